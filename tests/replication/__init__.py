"""Reads and writes over a primary and its streaming replicas, while links and processes fail."""
