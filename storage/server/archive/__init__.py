"""WAL archive of the embedded database, for point-in-time recovery."""
