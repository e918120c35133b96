"""The management API: accounts and what is in them but entities, for scripts, over the same operations."""
