"""The health of a server."""
