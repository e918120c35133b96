"""Storage accounts: list, keys, members, settings and service properties."""
