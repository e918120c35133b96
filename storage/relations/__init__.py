"""The relations of tables, histories and snapshots."""
