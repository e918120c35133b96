"""Backups of the whole server, and how they become a server again."""
