"""Watchdog notifications to the service manager, such as for systemd's WatchdogSec=."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from storage.server.options import Options
from storage.server.service_manager import ALIVE, ServiceManager

_ATTEMPTS = 4  # before the manager loses patience
_PATH = "/ui/healthz"


@contextmanager
def running(manager: ServiceManager, options: Options, listener: socket.socket) -> Iterator[None]:
    """Notify the service manager's watchdog from a thread, each time the server responds."""
    if not manager.patience:
        yield
        return
    pause = manager.patience / _ATTEMPTS
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if _answers(options, listener, pause):
                manager.notify(ALIVE)
            ended.wait(pause)

    # not waited for at the end, when nothing takes its connection
    threading.Thread(target=watch, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _answers(options: Options, listener: socket.socket, timeout: float) -> bool:
    """Return whether the server responds at all; any response counts, also that it has too many connections."""
    host, port = listener.getsockname()[:2]
    if options.scheme == "https":
        # without authorities, which would be read at each look
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its certificate has another name
        connection: HTTPConnection = HTTPSConnection(host, port, timeout=timeout, context=context)
    else:
        connection = HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", _PATH)
        connection.getresponse()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return True
