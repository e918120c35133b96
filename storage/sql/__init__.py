"""The only place with SQL: one statement per entity operation, and two executors that run statements."""
