"""Requests: routes and options, and how requests are counted and logged."""
