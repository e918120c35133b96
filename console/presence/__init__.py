"""Presence on the pages of a table: who else has it open."""
