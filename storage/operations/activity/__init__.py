"""The activity log, its actors, and operations of several transactions."""
