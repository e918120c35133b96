"""Snapshots of an account, their restore, and branches."""
