"""Comparing accounts and tables."""
