"""Metrics: request counts, latencies and sizes, as charts and numbers."""
