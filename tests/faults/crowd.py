"""Many clients at the same time, each with a connection and a thread of its own."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from tests.faults.connection import Connection

T = TypeVar("T")
PATIENCE = 180.0  # seconds after which clients count as hung


class Crowd:
    """`servers` share a database; clients are spread over them in turn."""

    def __init__(self, servers: Sequence[Any]) -> None:
        self.servers = servers

    def connect(self, number: int = 0) -> Connection:
        return Connection(self.servers[number % len(self.servers)])

    def run(self, clients: Iterable[Callable[[Connection], T]]) -> list[T]:
        """Return the results of the clients; they start together, and the first failure of one is raised."""
        tasks = list(clients)
        barrier = threading.Barrier(len(tasks))

        def begin(number: int, client: Callable[[Connection], T]) -> T:
            with self.connect(number) as connection:
                connection.open()
                barrier.wait(PATIENCE)
                return client(connection)

        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(len(tasks)))
            started = [pool.submit(begin, number, client) for number, client in enumerate(tasks)]
            return [future.result(PATIENCE) for future in started]
