"""Backups of the server, and the warning about them."""
