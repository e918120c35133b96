"""Backups of the whole server, and their restoration."""
