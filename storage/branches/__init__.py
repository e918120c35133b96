"""Branches of accounts, and restoration of accounts and tables from snapshots."""
