"""Worker processes that share one listening socket, each restarted when it dies."""

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from storage.server import metrics
from storage.server.http_server import DRAIN
from storage.server.options import Options
from storage.server.refusal import Refusal

logger = logging.getLogger(__name__)

ROOT = Path(__file__).parents[2]
PAUSE = 1.0  # seconds before a worker that died young is replaced
YOUNG = 5.0
_OUT_OF_MEMORY = " The system kills processes like this when it has no memory left: see its log."


class Worker:
    def __init__(self, listener: socket.socket) -> None:
        self.started_at = time.monotonic()
        self.is_serving = False
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "storage.server.worker", str(listener.fileno())],
            stdin=subprocess.PIPE,  # ends when we do
            stdout=subprocess.PIPE,  # a line when it serves, its end when it does
            env=environment(),
            pass_fds=[listener.fileno()],
            process_group=0,  # Ctrl-C is for us to hand on
        )

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def read(self) -> bool:
        """Wait for a line from the worker; return False if it has exited."""
        self.is_serving = self.output.readline() != b""
        return self.is_serving

    def reload(self) -> None:
        """Have the worker reload the certificate; one that is still starting notices changed files by itself."""
        if self.is_serving:
            self.process.send_signal(signal.SIGHUP)

    def end(self, deadline: float) -> None:
        try:
            self.process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            self.process.kill()
        with self.process:
            pass


def environment() -> dict[str, str]:
    """Return the environment for a subprocess that runs one of our modules."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


class Workers:
    def __init__(self, options: Options, listener: socket.socket, started: Callable[[], None]) -> None:
        self._options = options
        self._listener = listener
        self._started = started
        self._has_started = False
        self._is_draining = False
        self._wakeup, self._wake = os.pipe()
        self._workers: list[Worker] = []

    def run(self, sockets: Sequence[socket.socket]) -> None:
        self._workers = [Worker(self._listener) for _ in range(self._options.workers)]
        try:
            while not self._is_draining:
                self._tick()
        finally:
            self._end()

    def drain(self) -> None:
        self._is_draining = True
        os.write(self._wake, b"\0")  # ends the wait for workers

    def reload(self) -> None:
        for worker in self._workers:
            worker.reload()

    def stop_at_once(self) -> None:
        for worker in self._workers:
            worker.process.kill()

    def _tick(self) -> None:
        outputs = {worker.output.fileno(): worker for worker in self._workers}
        for output in select.select([*outputs, self._wakeup], [], [])[0]:
            if output == self._wakeup:
                return
            worker = outputs[output]
            if not worker.read():
                self._replace(worker)
            elif not self._has_started:
                self._has_started = True
                self._started()

    def _replace(self, worker: Worker) -> None:
        worker.end(time.monotonic() + 1)
        metrics.forget(worker.process.pid)
        if self._is_draining:
            return
        if not self._has_started:
            raise Refusal("The first worker could not start; see the error above.")
        status = worker.process.returncode
        logger.error(
            "A worker exited unexpectedly (status %d); starting another.%s",
            status,
            _OUT_OF_MEMORY if status == -signal.SIGKILL else "",
        )
        if time.monotonic() - worker.started_at < YOUNG:
            time.sleep(PAUSE)
        self._workers[self._workers.index(worker)] = Worker(self._listener)

    def _end(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + DRAIN + 2
        for worker in self._workers:
            worker.end(deadline)
