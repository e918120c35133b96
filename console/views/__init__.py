"""Requests to pages, one module per noun."""
