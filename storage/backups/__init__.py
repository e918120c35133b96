"""Backups, and the archive of the WAL."""
