"""Memory that a process takes during an operation."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

MEGABYTE = 1 << 20


class Growth:
    """Bytes the resident set of a process grew at most."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._before: int = self._process.memory_info().rss
        self.peak = self._before
        self._ended = threading.Event()

    @property
    def most(self) -> int:
        return int(self.peak - self._before)

    def watch(self) -> None:
        while not self._ended.wait(0.005):
            self.peak = max(self.peak, self._process.memory_info().rss)

    def end(self) -> None:
        self._ended.set()


@contextmanager
def growth_of(pid: int) -> Iterator[Growth]:
    growth = Growth(pid)
    watcher = threading.Thread(target=growth.watch)
    watcher.start()
    try:
        yield growth
    finally:
        growth.end()
        watcher.join()
