"""Page that edits or deletes all entities of a query."""
