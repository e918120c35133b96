"""Replicas: which database answers a read, and how far each is behind.

Console: console/replicas/. SQL: storage/sql/positions.py, storage/replicas/samples.py, storage/replicas/links.py.
"""
