"""The tables of an account: list, creation, deletion, settings."""
