"""What the service does, whoever asks: accounts, tables, entities. Owns the transactions; knows no HTTP."""
