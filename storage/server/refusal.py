"""Refusal to start or run a command: a plain sentence with the remedy."""


class Refusal(Exception):
    """Refusal printed without a stack trace; the process exits with status 1."""
