"""Imports of files, and copies from and to other services."""
