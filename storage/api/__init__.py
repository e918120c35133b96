"""Views of the management API that are not in the rooms of their subjects yet."""
