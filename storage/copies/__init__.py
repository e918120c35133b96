"""Copies from and to other services."""
