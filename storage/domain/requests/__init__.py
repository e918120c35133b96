"""Requests: routes, options, statuses, and what is counted and logged of them."""
