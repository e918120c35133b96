"""Saved queries."""
