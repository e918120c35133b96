"""Shared access signatures as people read and choose them."""
