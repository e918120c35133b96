"""Snapshots and branches."""
