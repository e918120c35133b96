"""Snapshots of accounts."""
