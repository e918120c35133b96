"""Activity log: activities as sentences, and undo."""
