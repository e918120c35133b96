"""The request log: what was refused, failed or slow, and why."""
