"""A primary and its streaming replicas, as docs/deployment.md sets them up, each on a port of its own."""

import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from storage.server import installation, options
from storage.server.data_folder import DataFolder
from storage.server.installation import Installation
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_for

USER = DATABASE = "tablero"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "120",
    "shared_buffers": "32MB",
    "wal_level": "replica",
    "hot_standby": "on",
    "fsync": "off",
    "log_min_messages": "warning",
    # a node that comes back is noticed soon
    "wal_receiver_timeout": "5s",
    "wal_sender_timeout": "5s",
    "wal_retrieve_retry_interval": "100ms",
}


@dataclass
class Node:
    """One PostgreSQL; ends with its group."""

    name: str
    folder: Path
    port: int
    found: Installation
    password: str
    settings: dict[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] | None = None  # environment of the process
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def url(self, port: int = 0) -> str:
        """``port`` is that of a proxy."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{port or self.port}/{DATABASE}"

    def fetch(self, text: str, *parameters: Any, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """Execute a statement; once more where replay on a standby cancelled it, which then did nothing."""
        url = self.url().rpartition("/")[0] + f"/{database}"
        deadline = time.monotonic() + PATIENCE
        while True:
            with psycopg.connect(url, autocommit=True, connect_timeout=int(PATIENCE)) as connection:
                try:
                    cursor = connection.execute(text, parameters or None)
                    return cursor.fetchall() if cursor.description else []
                except psycopg.errors.SerializationFailure:
                    if time.monotonic() > deadline:
                        raise

    def change(self, **settings: str) -> None:
        """Change settings that need no restart."""
        for name, value in settings.items():
            self.fetch(f"ALTER SYSTEM SET {name} = '{value}'")
        self.fetch("SELECT pg_reload_conf()")
        for name in settings:
            assert self.fetch(f"SHOW {name}")

    def start(self) -> None:
        given = {**SETTINGS, "port": str(self.port), **self.settings}
        command = [self.found.programs / "postgres", "-D", self.data]
        for name, value in given.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self.environment,
                **self.found.popen,
            )
        wait_for(self.is_ready, f"{self.name} to start: {self.log}")

    def is_ready(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            return self.fetch("SELECT 1", database="postgres") == [(1,)]
        except psycopg.OperationalError:
            return False

    def answers(self) -> bool:
        """Return whether it runs, and is not stopped or slow."""
        if self.process is None or psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED:
            return False
        return self.is_ready()

    def stop(self) -> None:
        """Stop at once, as in a crash of the machine; do nothing if it does not run."""
        if self.process is None:
            return
        self.resume()
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.kill()
        self.process = None

    def kill(self) -> None:
        """Kill all its processes by SIGKILL; do nothing if it does not run."""
        if self.process is None:
            return
        family = self._family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(PATIENCE)
        psutil.wait_procs(family, 10)  # PostgreSQL does not start while one has its shared memory
        self.process = None

    def pause(self) -> None:
        """Stop all its processes by SIGSTOP: connections stay open and get no answers."""
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def resume(self) -> None:
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _family(self) -> list[psutil.Process]:
        assert self.process is not None
        try:
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    # replication

    def promote(self) -> None:
        """Make it a primary; a statement that waited for that would hold the snapshot that replay waits for."""
        assert self.fetch("SELECT pg_promote(false)") == [(True,)]
        wait_for(
            lambda: self.fetch("SELECT NOT pg_is_in_recovery()") == [(True,)], f"{self.name} to be promoted"
        )

    def position(self) -> str:
        """Return the position in the log up to which a primary has written."""
        return str(self.fetch("SELECT pg_current_wal_insert_lsn()")[0][0])

    def has_replayed(self, position: str) -> bool:
        return bool(self.fetch("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", position)[0][0])

    def reads(self) -> int:
        """Return how often entities were looked up here; the count lags by a moment."""
        [(number,)] = self.fetch(
            "SELECT coalesce(sum(idx_scan + seq_scan), 0)::bigint FROM pg_stat_user_tables"
            " WHERE relname LIKE 'entity%'"
        )
        return int(number)

    def wait_for_position(self, position: str) -> None:
        wait_for(lambda: self.has_replayed(position), f"{self.name} to replay {position}")


class Group:
    """Nodes that replicate one database."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o711)
        self._folder = folder
        # the data folder is that of a server which does not exist: it holds the programs, where root needs a copy
        data = DataFolder(folder)
        self._found = installation.find(options.read({"TABLERO_DATA": str(folder)}), data)
        self._password = secrets.token_urlsafe(12)
        self.nodes: dict[str, Node] = {}

    def primary(
        self, name: str = "primary", *, environment: Mapping[str, str] | None = None, **settings: str
    ) -> Node:
        """Make and start the first node."""
        node = self.node(name, settings)
        node.environment = environment
        secret = node.folder / "password"
        secret.write_text(self._password)
        self._found.own(secret)
        _run(
            self._found.programs / "initdb",
            *("-D", node.data, "-U", USER, "--pwfile", secret, "-A", "scram-sha-256"),
            *("-E", "UTF8", "--no-locale", "--no-sync"),
            **self._found.popen,
        )
        secret.unlink()
        node.start()
        node.fetch(f"CREATE DATABASE {DATABASE}", database="postgres")
        return node

    def replica(self, name: str, source: Node, *, through: int = 0, **settings: str) -> Node:
        """Copy a node and start the copy as its streaming replica, ``through`` the port of a proxy."""
        node = self.node(name, settings)
        self.copy(node, source, through=through)
        node.start()
        return node

    def copy(self, node: Node, source: Node, *, through: int = 0) -> None:
        """Make of a node, which does not run, a replica that can be started."""
        self.copy_from(node, source.url(through) + f"?application_name={node.name}")

    def copy_from(self, node: Node, conninfo: str, *options: str) -> None:
        """Make of a node a replica of any server; ``options`` are for pg_basebackup."""
        shutil.rmtree(node.data, ignore_errors=True)
        program = installation.packaged_programs() / "pg_basebackup"
        # as ourselves: another user may not enter the folder of the package
        given = ("-d", conninfo, "-D", node.data, "-R", "-X", "stream", "-c", "fast", "--no-sync", *options)
        _run(program, *given)
        for path in (node.data, *node.data.rglob("*")):
            self._found.own(path)

    def node(self, name: str, settings: Mapping[str, str]) -> Node:
        """Return a new node without data."""
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        self._found.own(folder)
        node = Node(name, folder, free_port(), self._found, self._password, dict(settings))
        self.nodes[name] = node
        return node

    def stop(self) -> None:
        for node in reversed(self.nodes.values()):
            node.stop()


@contextmanager
def group(folder: Path) -> Iterator[Group]:
    made = Group(folder)
    with ExitStack() as stack:
        stack.callback(made.stop)
        yield made


def _run(*command: str | Path, **user: Any) -> None:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd="/", env=environment, check=False, **user
    )
    assert done.returncode == 0, done.stderr
