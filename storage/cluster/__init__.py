"""Distributed tables: a table over the nodes of a Citus cluster.

SQL: storage/sql/distribution.py.
"""
