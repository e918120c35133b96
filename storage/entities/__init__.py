"""Entities."""
