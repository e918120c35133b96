"""Copies of tables from and to other services."""
