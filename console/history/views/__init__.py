"""Views of the history of entities."""
