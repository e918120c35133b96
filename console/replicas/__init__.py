"""Replicas of the database, for those who look after the server."""
