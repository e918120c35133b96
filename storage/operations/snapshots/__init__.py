"""Snapshots, branches, copies of accounts, comparisons, and restoring from them."""
