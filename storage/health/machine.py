"""Name the machine that a server runs on."""

import socket

from django.conf import settings


def machine() -> str:
    """Name this machine, if several can serve the database."""
    return socket.gethostname()[:128] if settings.OPTIONS.database_url else ""
