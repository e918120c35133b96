"""The history of entities."""
