"""Bulk edits: one edit of all entities that a query finds, with a preview.

Expressions: storage/editing/expressions/. Pages: console/bulk_edit/.
"""
