"""Metrics: counts and times of requests, and sizes, as charts and numbers."""
