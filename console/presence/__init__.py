"""Presence on the pages of a table: other users who have it open."""
