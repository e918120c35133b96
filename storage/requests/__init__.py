"""The request log."""
