"""Management commands and their shared helpers."""
