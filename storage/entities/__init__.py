"""Entities: reading, editing, pasting and deletion by users."""
