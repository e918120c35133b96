"""SQL of the storage: one statement per entity operation, and two executors."""
