"""Faults that the server must withstand: hostile requests, crowds, sudden death, and very large tables.

Everything here runs against real processes of `manage.py serve` and their own PostgreSQL.
"""
