"""Comparison of accounts, tables, snapshots and past states, and its application."""
