"""Who else has a table open: rows of an unlogged relation that expire by the database's clock."""
