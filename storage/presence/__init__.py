"""Presence: other users who have a table open."""
