"""Branches of accounts, and restoring accounts and tables from snapshots.

Pages: console/snapshots/.
"""
