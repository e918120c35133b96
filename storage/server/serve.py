"""Life cycle of the server: bind, database, migrations, workers, drain, stop."""

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from storage.server import (
    database,
    descriptors,
    embedded,
    garbage,
    http_server,
    metrics,
    migration,
    postgresql_upgrade,
    running_servers,
    startup_message,
    tls,
    watchdog,
)
from storage.server.archive import archiving, drill, keeper
from storage.server.backups import schedule
from storage.server.options import Options
from storage.server.service_manager import READY, STOPPING, ServiceManager
from storage.server.workers import Workers

Say = Callable[[str], None]


class Stopped(BaseException):
    """A signal arrived before the server was ready; a BaseException, so that no handler catches it."""


class Signals:
    """Signal handling: the first SIGTERM or SIGINT shuts down gracefully, a second at once.

    SIGHUP reloads certificates. SIGUSR1 and SIGUSR2, by which other servers open their logs again, change nothing.
    """

    def __init__(self) -> None:
        self.first: Callable[[], None] = self._give_up
        self.reload: Callable[[], None] = lambda: None
        self._had_terminal = has_terminal()
        self.second: list[Callable[[], None]] = []
        self._count = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, self._receive)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda *_: None)  # children get no handler, but would keep a signal ignored

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and not (self._had_terminal and not has_terminal()):
            self.reload()
            return
        self._count += 1
        if self._count == 1:
            self.first()
        else:
            logging.disable()  # messages that are lost now are meant to be
            for stop in self.second:
                stop()

    def _give_up(self) -> None:
        raise Stopped


def has_terminal() -> bool:
    """Return whether the process has a terminal, whose closing sends SIGHUP."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def run(options: Options, say: Say) -> None:
    """Serve until a signal arrives; raises Refusal if that is impossible."""
    signals = Signals()
    manager = ServiceManager()
    descriptors.raise_limit()
    tls.check(options)
    schedule.check(options)
    archiving.check(options)
    try:
        with ExitStack() as stack:
            listener = stack.enter_context(http_server.bind(options))
            stack.enter_context(metrics.counting())
            metrics_url = stack.enter_context(metrics.listening(options))
            manager.describe("Starting the database")
            stack.enter_context(_database(options, signals, say))
            stack.callback(database.close_pools)
            stack.enter_context(running_servers.announced(options))
            garbage.keep()  # the modules
            manager.describe("Preparing the database")
            migration.prepare(options, say)
            stack.enter_context(schedule.running(options))
            stack.enter_context(keeper.running(options))
            stack.enter_context(drill.running(options))
            _serve(options, listener, metrics_url, signals, manager, say)
            say("Stopping ...")
    except Stopped:
        say("Stopped.")


@contextmanager
def _database(options: Options, signals: Signals, say: Say) -> Iterator[None]:
    if options.database_url:
        yield
        return
    postgresql_upgrade.convert(options, say)
    serves_itself = options.workers == 1
    with embedded.running(
        options,
        purpose="serve",
        say=say,
        settings=schedule.database_settings(options),
        meanwhile=http_server.applications if serves_itself else lambda: None,
    ) as postgres:
        postgres.keep()
        signals.second.append(postgres.stop_at_once)
        yield


def _serve(
    options: Options,
    listener: socket.socket,
    metrics_url: str | None,
    signals: Signals,
    manager: ServiceManager,
    say: Say,
) -> None:
    lines = list(startup_message.lines(options, listener.getsockname()[1]))
    if metrics_url is not None:
        lines.insert(-1, f"Metrics:           {metrics_url}")
    database.close_pools()  # pools of the start; workers have their own

    def announce() -> None:
        for line in lines:
            say(line)
        manager.notify(f"{READY}\nSTATUS={lines[0]}")

    server = (
        Workers(options, listener, announce) if options.workers > 1 else http_server.Server(options, announce)
    )

    def end() -> None:
        manager.notify(STOPPING)
        server.drain()

    signals.first = end
    signals.reload = server.reload
    signals.second.insert(0, server.stop_at_once)
    http_server.listen(options, listener)
    with watchdog.running(manager, options, listener):
        server.run([listener])
