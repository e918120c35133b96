"""Storage accounts, their settings and service properties."""
