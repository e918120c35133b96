"""Comparisons of accounts, tables, snapshots and times, and making one equal to another.

SQL: storage/sql/comparing.py.
"""
