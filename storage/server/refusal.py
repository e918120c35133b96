"""What keeps the server from doing what it was asked, as one plain sentence with its remedy."""


class Refusal(Exception):
    """Printed as it is, without a stack trace; the process then exits with status 1."""
