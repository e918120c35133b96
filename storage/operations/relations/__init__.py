"""The relations of tables, histories and snapshots: what exists and what it contains."""
