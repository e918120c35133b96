"""A running process: the catalog, jobs, counters and the Table service's operations."""
