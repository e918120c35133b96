"""Entities, their changes and their previews."""
