"""Replicas: which database answers a read, and how far each is behind.

Code: storage/runtime/replicas.py. SQL: storage/sql/positions.py.
"""
