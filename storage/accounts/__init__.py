"""Storage accounts: settings, keys, quotas, lifetimes, service properties.

Operations: storage/operations/accounts/.
"""
