"""Editing a ``$filter``: builder rows, lint, quick fixes, highlighting and parameters."""
