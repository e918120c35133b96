"""The only place with SQL text: one statement per entity operation, and the two executors that run it."""
