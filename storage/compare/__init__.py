"""Comparisons of accounts, tables, snapshots and times, and making one equal to another.

Operations: storage/operations/snapshots/. SQL: storage/sql/comparing.py.
"""
