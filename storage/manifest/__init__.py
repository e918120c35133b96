"""Manifests: the declared state of accounts, its differences from the actual state, and their application."""
