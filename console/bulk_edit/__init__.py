"""The page that edits or deletes everything that a query finds."""
