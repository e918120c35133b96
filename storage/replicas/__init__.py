"""Replicas: choice of the database for a read, and replication lag."""
