"""Storage accounts: settings, keys, quotas, lifetimes, service properties."""
