"""Bulk edits: one edit of all entities that a query finds, with a preview.

Operations: storage/operations/entities/. Expressions: storage/editing/expressions/. Pages: console/entities/.
"""
