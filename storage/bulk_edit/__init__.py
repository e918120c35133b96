"""Bulk edits."""
