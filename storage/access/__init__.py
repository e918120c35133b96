"""Access policies and SAS tokens."""
