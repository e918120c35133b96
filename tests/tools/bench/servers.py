"""The servers under test, started on free ports with their data in a temporary folder."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from tests import programs
from tests.ports import free_port
from tests.seeds import SHARED, seeded
from tests.tools.bench import processes
from tests.tools.bench.requests import Client

ROOT = Path(__file__).parents[3]
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ACCOUNT = "devstoreaccount1"
AZURITE_FOLDER = "azurite"
START = 600
"""Seconds a server may take to start: a first start of the product creates its database, Azurite reads its file."""
UNKNOWN = "unknown version"
OURS, RELAXED, PEER = "Tablero", "Tablero relaxed", "Azurite"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tablero-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # under root PostgreSQL runs as another user, who must get in
        folder.chmod(0o711)
        yield folder


class UnavailableError(Exception):
    """A side cannot take part; the message says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; without a process id its CPU time is unknown."""

    name: str
    version: str
    endpoint: str
    pid: int | None
    key: str = DEVELOPMENT_KEY

    def client(self) -> Client:
        return Client(self.endpoint, self.key)

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid) if self.pid else 0.0

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop all its processes, so that work left behind by its own runs does not slow down another server."""
        if self.pid is None:
            yield
            return
        processes.signal_tree(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            processes.signal_tree(self.pid, signal.SIGCONT)


@contextmanager
def tablero(folder: Path, *, is_relaxed: bool = False) -> Iterator[Server]:
    """Run the product as its command starts it, on a free port; if ``is_relaxed``, with relaxed durability."""
    name = "tablero-relaxed" if is_relaxed else "tablero"
    if SHARED in os.environ and not (folder / name).exists():
        seeded(folder / name)  # a run of the tests, in which a first start would take most of the time
    log = folder / f"{name}.log"
    options = ["serve", "--listen", "127.0.0.1:0", "--data", str(folder / name)]
    options += ["--durability", "relaxed"] if is_relaxed else []
    with running([sys.executable, "manage.py", *options], log, ROOT) as process:
        endpoint = wait_for_endpoint(process, log)
        yield Server(RELAXED if is_relaxed else OURS, commit(), endpoint, process.pid)


@contextmanager
def azurite(folder: Path, program: "Azurite") -> Iterator[Server]:
    """Run the table service of Azurite with its default persistence and no log; its data stays in the folder."""
    port = free_port()
    data = folder / AZURITE_FOLDER
    data.mkdir(exist_ok=True)
    options = ["--tablePort", str(port), "--location", str(data), "--silent", "--disableTelemetry"]
    with running([*program.command, *options], folder / "azurite.log", data) as process:
        wait_for_port(process, port, folder / "azurite.log")
        yield Server(PEER, program.version, f"http://127.0.0.1:{port}/{ACCOUNT}", process.pid)


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
            process.wait(300)  # thousands of files may have to be written
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_endpoint(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in waiting(process, log):
        result = re.search(rf"http://[\w.:\[\]-]+/{ACCOUNT}", log.read_text())
        if result:
            return result[0]
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


@dataclass(frozen=True, slots=True)
class Azurite:
    """An installed Azurite: the command of its table service, and its version and the one of Node.js."""

    command: list[str]
    version: str


def find_azurite() -> Azurite:
    """Update the npm package in the user's cache folder; without a network, use the installed one.

    Azurite names the oldest Node.js it runs on. If the machine's is older, the npm package `node` brings another.
    """
    modules = user_cache_path("tablero") / "npm" / "node_modules"
    npm, installed = programs.find("npm"), programs.find("node")
    if npm is None or installed is None:
        raise UnavailableError("Azurite needs Node.js and npm, which are not installed")
    install(npm, "azurite@latest", modules)
    package = json.loads((modules / "azurite" / "package.json").read_text())
    required = int((re.search(r"\d+", package["engines"]["node"]) or ["0"])[0])
    bundled = modules / "node" / "bin" / "node"
    node = next((name for name in (installed, str(bundled)) if major(node_version(name)) >= required), None)
    if node is None:
        install(npm, f"node@{required}", modules)
        node = str(bundled)
    script = modules / "azurite" / "dist" / "src" / "table" / "main.js"
    return Azurite([node, str(script)], f"{package['version']} on Node.js {node_version(node)}")


def install(npm: str, package: str, modules: Path) -> None:
    modules.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(modules.parent), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not (modules / package.partition("@")[0] / "package.json").exists():
        raise UnavailableError(f"npm could not install {package}: {done.stderr.strip()[-300:]}")


def node_version(program: str) -> str:
    """Return the version of a Node.js, empty if the program does not run."""
    if not Path(program).exists():
        return ""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().removeprefix("v")


def major(version: str) -> int:
    return int(version.partition(".")[0] or 0)


def commit() -> str:
    git = programs.find("git")
    if git is None:
        return UNKNOWN
    command = [git, "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or UNKNOWN
