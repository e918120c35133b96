"""Interruptible database connections of threads."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, get_ident
from time import monotonic
from typing import Any, Final, Self, cast
from weakref import WeakSet

import psycopg

from storage.sql import timelines
from storage.sql.forms import EXTENSIONS

# for the extensions of forms of relations, where they are installed
_SETTINGS: Final = [
    f"SELECT set_config('{name}', '{value}', false) FROM pg_extension WHERE extname = '{extension.name}'"
    for extension in EXTENSIONS
    for name, value in extension.session_settings.items()
]

_opened: WeakSet["InterruptibleConnection"] = WeakSet()


class InterruptibleConnection(psycopg.Connection[Any]):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened_at = monotonic()
        self.waiting_thread: int | None = None  # that waits for an answer
        _opened.add(self)

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Open a connection to a server, rejecting a former primary."""
        opened = cast("Self", timelines.connect_in_thread(super().connect, conninfo, **kwargs))
        for setting in _SETTINGS:
            opened.execute(setting)
        if not opened.autocommit:
            opened.commit()
        return opened

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        self.waiting_thread = get_ident()
        try:
            return super().wait(*args, **kwargs)
        finally:
            self.waiting_thread = None


def interrupt(thread: int) -> None:
    """Terminate the connection on which a thread waits; its statement raises OperationalError."""
    for connection in list(_opened):
        if connection.waiting_thread == thread:
            shut_down(connection)


@contextmanager
def interrupting_after(seconds: float) -> Iterator[None]:
    """Terminate this thread's connections if the block exceeds a time in seconds."""
    ended, thread = Event(), get_ident()

    def watch() -> None:
        pause = seconds
        while not ended.wait(pause):
            interrupt(thread)
            pause = 0.5  # it may have waited for none at that moment

    Thread(target=watch, name="limit", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def interrupt_older(moment: float) -> None:
    """Terminate all connections opened before a time of the monotonic clock."""
    for connection in list(_opened):
        if connection.opened_at < moment:
            shut_down(connection)


def shut_down(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Terminate a connection: its statement raises OperationalError."""
    # not closed: what waits for its answer does that when it sees the end
    with suppress(OSError, psycopg.Error):
        descriptor = os.dup(connection.fileno())
        with socket.socket(fileno=descriptor) as its_socket:
            its_socket.shutdown(socket.SHUT_RDWR)
