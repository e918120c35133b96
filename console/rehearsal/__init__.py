"""Rehearsals of failures, such as throttling, lost answers and short pages, and reports on the behaviour of clients."""
