"""Snapshots of accounts, their restore, branches, and copies of accounts.

Operations: storage/operations/snapshots/.
"""
