"""Undo of activities and of recorded changes."""
