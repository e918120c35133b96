"""Distributed tables: a table over the nodes of a Citus cluster.

Operations: storage/operations/tables/. SQL: storage/sql/distribution.py.
"""
