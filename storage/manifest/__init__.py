"""Manifests: what accounts should be, what differs from it, and making them so."""
