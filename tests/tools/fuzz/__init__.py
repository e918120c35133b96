"""Requests from nearly valid to absurd, through every door: never a 500, never a hang, never a malformed answer."""
