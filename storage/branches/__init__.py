"""Branches of accounts, and restoring accounts and tables from snapshots."""
