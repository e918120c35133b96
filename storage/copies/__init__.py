"""Copies to and from another table service, and from Azurite files."""
