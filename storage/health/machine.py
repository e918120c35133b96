"""Name of the machine that runs a server."""

import socket

from django.conf import settings


def machine() -> str:
    """Return this machine's name, if several can serve the database."""
    return socket.gethostname()[:128] if settings.OPTIONS.database_url else ""
