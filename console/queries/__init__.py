"""Queries of a table: filters as text, conditions and code, and saved queries."""
