"""Distributed tables: the settings card, and actions to distribute and undo that."""
