"""Presence: who else has a table open."""
