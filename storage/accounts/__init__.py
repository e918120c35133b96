"""Storage accounts."""
