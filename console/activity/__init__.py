"""The activity log: what was done, in words, and undo."""
