"""What belongs to a running process: the catalog, jobs, counters, replicas and the Table service's operations."""
