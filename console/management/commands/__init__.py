"""Management commands for users and API tokens."""
