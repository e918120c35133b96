"""Metrics of an account or table: charts, and the numbers in tables."""
