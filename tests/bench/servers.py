"""The servers under test, started on free ports with their data in a temporary folder."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import processes
from tests.bench.requests import Client

ROOT = Path(__file__).parents[2]
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START = 120
"""Seconds a server may take to start; a first start of the product creates its database."""


class UnavailableError(Exception):
    """A side cannot take part; the message says why."""


@dataclass(slots=True)
class Server:
    """A running server; without a process id its idleness and memory are unknown."""

    name: str
    version: str
    endpoint: str
    pid: int | None
    late_work: float
    """Seconds after a write at which the server may still begin work that the write left behind."""
    key: str = DEVELOPMENT_KEY
    written: bool = False

    def client(self) -> Client:
        return Client(self.endpoint, self.key)

    def memory(self) -> int:
        return processes.memory(self.pid) if self.pid else 0

    def settle(self) -> None:
        """Wait until the server has used hardly any CPU time for a while."""
        if self.pid is None:
            return
        quiet = self.late_work if self.written else 0.5
        deadline = time.monotonic() + 60
        since, used = time.monotonic(), processes.cpu_seconds(self.pid)
        while (now := time.monotonic()) < min(since + quiet, deadline):
            time.sleep(0.25)
            before, used = used, processes.cpu_seconds(self.pid)
            if used - before > 0.02:
                since = now
        self.written = False


@contextmanager
def tablero(folder: Path, *, counted: bool = True) -> Iterator[Server]:
    """The product as its command starts it, on a port of its choice; or what it would be if it counted nothing."""
    name = "tablero" if counted else "uncounted"
    program = ["manage.py"] if counted else ["-m", "tests.bench.uncounted"]
    options = ["serve", "--listen", "127.0.0.1:0", "--data", str(folder / name)]
    log = folder / f"{name}.log"
    with running([sys.executable, *program, *options], log, ROOT) as process:
        endpoint = wait_for_endpoint(process, log)
        yield Server("Tablero", commit(), endpoint, process.pid, late_work=1)


@contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    """The table service of Azurite with its default persistence, and without a log."""
    package = find_azurite()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    data = folder / "azurite"
    data.mkdir()
    script = package / "dist" / "src" / "table" / "main.js"
    options = ["--tablePort", str(port), "--location", str(data), "--silent", "--disableTelemetry"]
    with running(["node", str(script), *options], folder / "azurite.log", data) as process:
        wait_for_port(process, port, folder / "azurite.log")
        version = json.loads((package / "package.json").read_text())["version"]
        # it saves the whole database up to five seconds after a write
        yield Server(
            "Azurite", version, f"http://127.0.0.1:{port}/devstoreaccount1", process.pid, late_work=5.5
        )


@contextmanager
def running(command: list[str], log: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_endpoint(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in waiting(process, log):
        found = re.search(r"http://[\w.:\[\]-]+/devstoreaccount1", log.read_text())
        if found:
            return found[0]
    raise UnavailableError(f"no endpoint after {START} s: {tail(log)}")


def wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in waiting(process, log):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            continue
        return
    raise UnavailableError(f"no answer on port {port} after {START} s: {tail(log)}")


def waiting(process: subprocess.Popen[bytes], log: Path) -> Iterator[None]:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise UnavailableError(f"the server ended with code {process.returncode}: {tail(log)}")
        yield
        time.sleep(0.05)


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-600:].strip()


def find_azurite() -> Path:
    """The npm package, installed into the cache folder of the user when it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tablero" / "npm"
    package = cache / "node_modules" / "azurite"
    if not shutil.which("node"):
        raise UnavailableError("Azurite needs Node.js, which is not installed")
    if not (package / "package.json").exists():
        install_azurite(cache)
    return package


def install_azurite(cache: Path) -> None:
    if not shutil.which("npm"):
        raise UnavailableError("Azurite is not installed, nor is npm to install it with")
    cache.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cache), "azurite"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"npm could not install Azurite: {done.stderr.strip()[-300:]}")


def commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown version"
