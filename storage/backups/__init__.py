"""Backups and the archive."""
