"""Entities: queries, edits, and what samples of them show."""
