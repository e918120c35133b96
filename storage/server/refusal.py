"""Refusal to start or to run a command, as one plain sentence with its remedy."""


class Refusal(Exception):
    """Printed as it is, without a stack trace; the process then exits with status 1."""
