"""Running process: catalog, jobs, counters and the operations of the Table service."""
