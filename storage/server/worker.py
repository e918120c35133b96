"""One of several processes that serve one socket; started by `workers`."""

import os
import signal
import socket
import sys
import threading

import django
from django.conf import settings

from storage.server import database, http_server


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    django.setup()
    listener = socket.socket(fileno=int(sys.argv[1]))
    server = http_server.Server(settings.OPTIONS, lambda: print("ready", flush=True))
    signal.signal(signal.SIGTERM, lambda *_: server.drain())
    signal.signal(signal.SIGHUP, lambda *_: server.reload())
    try:
        server.run([listener])
    finally:
        database.close_pools()


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
