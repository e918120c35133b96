"""Worker process that serves a shared socket; started by `workers`."""

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

import django
from django.conf import settings

from storage.server import database, garbage, http_server

OOM_SCORE = 500  # out of 1000; storage.server.supervisor has the score of a backend


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _be_killed_first()
    garbage.pause()
    django.setup()
    listener = socket.socket(fileno=int(sys.argv[1]))
    server = http_server.Server(settings.OPTIONS, lambda: print("ready", flush=True))
    signal.signal(signal.SIGTERM, lambda *_: server.drain())
    signal.signal(signal.SIGHUP, lambda *_: server.reload())
    try:
        server.run([listener])
    finally:
        database.close_pools()


def _be_killed_first() -> None:
    """Raise the OOM score, so that the kernel kills a worker, which is replaced, before PostgreSQL."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
