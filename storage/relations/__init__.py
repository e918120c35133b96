"""Relations of tables, histories and snapshots."""
