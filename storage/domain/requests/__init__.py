"""Requests: routes, options and statuses, and how requests are counted and logged."""
