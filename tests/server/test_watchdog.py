"""Signs of life: only of a server that answers."""

import os
import socket
import threading
import uuid

import pytest

from storage.server import options, watchdog
from storage.server.service_manager import ServiceManager

PATIENCE = 60


@pytest.fixture
def manager(monkeypatch):
    """Receive the notifications to a service manager with a timeout of four seconds."""
    address = f"tablero-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{address}")
        receiver.settimeout(PATIENCE)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{address}")
        monkeypatch.setenv("WATCHDOG_USEC", "4000000")
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        yield receiver


@pytest.mark.long
def test_says_that_it_is_alive_only_when_it_answers(manager):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)

        def answer():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

        with watchdog.running(ServiceManager(), options.read({}), listener):
            silent = [listener.accept()[0] for _ in range(2)]  # the first attempt has had no answer
            manager.setblocking(False)
            with pytest.raises(BlockingIOError):
                manager.recv(4096)
            manager.settimeout(PATIENCE)
            answering = threading.Thread(target=answer)
            answering.start()
            assert manager.recv(4096) == b"WATCHDOG=1"
        listener.shutdown(socket.SHUT_RDWR)
        answering.join(PATIENCE)
        for connection in silent:
            connection.close()


def test_another_process_is_watched(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert ServiceManager().patience == 0
    assert "WATCHDOG_USEC" not in os.environ
