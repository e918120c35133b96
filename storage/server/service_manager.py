"""Notifications to the service manager by the sd_notify protocol."""

import os
import socket
from contextlib import suppress
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
ALIVE: Final = "WATCHDOG=1"


class ServiceManager:
    """Service manager of this process; without one, notifications are dropped."""

    def __init__(self) -> None:
        # our children must not speak for us: PostgreSQL knows the protocol, too
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        microseconds, process = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        is_watched = microseconds.isdecimal() and process in ("", str(os.getpid()))
        # seconds after which it restarts a server that has not said ALIVE; 0 if it does not
        self.patience = int(microseconds) / 1e6 if is_watched and self._address else 0.0

    def notify(self, message: str) -> None:
        """Send a notification, ignoring an unreachable manager."""
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(message.encode(), address)

    def describe(self, status: str) -> None:
        """Set the status text of the service."""
        self.notify(f"STATUS={status}")
