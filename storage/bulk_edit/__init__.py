"""Bulk edits: one edit of all entities that match a query, with a preview.

Expressions: storage/editing/expressions/. Pages: console/bulk_edit/.
"""
