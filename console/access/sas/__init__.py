"""SAS tokens: the registry, new tokens and the inspector."""
