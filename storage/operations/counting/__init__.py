"""Counts of requests, and of what accounts and tables contain."""
