"""Snapshots of an account, their restoration, and branches."""
