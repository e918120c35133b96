"""A cluster that was set up as docs/cluster.md says: databases of its own on all nodes, and their processes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.live_server import LiveServer, start_server

URL = "TEST_CITUS"  # the environment variable with the URL of a superuser's connection to the coordinator
SHARDS = 8
PATIENCE = 120.0  # seconds in which a node answers again


@dataclass(frozen=True)
class Node:
    """A node of the cluster, by the name that the other nodes know."""

    parameters: dict[str, Any]

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(
            **{**self.parameters, "dbname": database, "connect_timeout": 5}, autocommit=True
        )

    def execute(self, text: str, database: str = "postgres") -> list[Any]:
        with self.connect(database) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    @property
    def address(self) -> tuple[str, int]:
        return self.parameters["host"], int(self.parameters["port"])

    @cached_property
    def _folder(self) -> Path:
        return Path(self.execute("SHOW data_directory")[0][0])

    @property
    def process(self) -> psutil.Process | None:
        """Return the server process; None if the node is on another machine."""
        try:
            lines = (self._folder / "postmaster.pid").read_text().splitlines()
            process = psutil.Process(int(lines[0]))
        except (OSError, psutil.Error):
            return None
        return process if int(lines[3]) == self.address[1] else None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let all processes of the node stand still, as when its machine hangs."""
        assert self.process is not None
        family = [self.process, *self.process.children(recursive=True)]
        try:
            _send(family, signal.SIGSTOP)
            yield
        finally:
            _send(family, signal.SIGCONT)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Kill all processes of the node, and start it again at the end."""
        process = self.process
        assert process is not None
        command, environment = process.cmdline(), process.environ()
        user, group = process.uids().real, process.gids().real
        family = [process, *process.children(recursive=True)]
        _send(family, signal.SIGSTOP)  # so that none has the time to do anything about it
        _send(family, signal.SIGKILL)
        psutil.wait_procs(family, 10)
        try:
            yield
        finally:
            subprocess.run(
                ["sh", "-c", 'setsid "$@" >> restarted.log 2>&1 < /dev/null &', "sh", *command],
                env=environment,
                user=user,
                group=group,
                cwd=self._folder,
                check=True,
            )
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                self.execute("SELECT 1")
                return
            time.sleep(0.2)
        raise AssertionError(f"{self.address} does not answer again")


def _send(family: list[psutil.Process], number: signal.Signals) -> None:
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


class Cluster:
    """The coordinator and the workers, which the database that a URL names knows."""

    def __init__(self, url: str) -> None:
        self._parameters = conninfo_to_dict(url)
        self.coordinator = self._node(self._parameters["host"], self._parameters.get("port", 5432))
        database = str(self._parameters["dbname"])
        nodes = self.coordinator.execute(
            "SELECT nodename, nodeport, groupid FROM pg_dist_node ORDER BY nodeid", database
        )
        self.workers = [self._node(name, port) for name, port, group in nodes if group]
        self._names = [(name, port) for name, port, _ in sorted(nodes, key=lambda it: it[2] != 0)]
        [(self._role,)] = self.coordinator.execute(
            "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()", database
        )
        assert self.workers and len(self._names) > len(self.workers), "docs/cluster.md, Set up the nodes"

    def _node(self, host: Any, port: Any) -> Node:
        return Node({**self._parameters, "host": host, "port": port})

    @property
    def nodes(self) -> list[Node]:
        return [self.coordinator, *self.workers]

    @property
    def is_local(self) -> bool:
        return all(node.process is not None for node in self.nodes)

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make a database on all nodes and yield its name; it is dropped at the end."""
        name = f"tablero_test_{uuid4().hex[:12]}"
        with ExitStack() as stack:
            with self.coordinator.connect() as alone:
                # another process that adds nodes would change the same roles on them
                alone.execute("SELECT pg_advisory_lock(1)")
                self._make(name, stack)
            yield name

    def _make(self, name: str, stack: ExitStack) -> None:
        for node in self.nodes:
            stack.callback(node.execute, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            node.execute(f'CREATE DATABASE {name} OWNER "{self._role}"')
            node.execute("CREATE EXTENSION citus", name)
        (host, port), *workers = self._names
        execute = self.coordinator.execute
        execute(f"SELECT citus_set_coordinator_host('{host}', {port})", name)
        for worker, number in workers:
            execute(f"SELECT citus_add_node('{worker}', {number})", name)
        execute(f"ALTER DATABASE {name} SET citus.shard_count = {SHARDS}", name)

    def url(self, database: str) -> str:
        """Return the URL of a database for a server: with the role that owns the database of the cluster."""
        host, port = self.coordinator.address
        password = f":{quote(str(self._parameters['password']))}" if "password" in self._parameters else ""
        return f"postgres://{quote(self._role)}{password}@{host}:{port}/{database}"


@contextmanager
def distributing_server(data: Path, *arguments: str, **options: Any) -> Iterator[LiveServer]:
    """Run a server on a database of its own in the cluster; tables of all its accounts are distributed."""
    cluster = Cluster(os.environ[URL])
    with cluster.database() as name, serving(cluster, name, data, *arguments, **options) as live:
        live.distributes = True
        live.manage("account", "distributes", live.account, "on")
        yield live


@contextmanager
def serving(
    cluster: Cluster, database: str, data: Path, *arguments: str, **options: Any
) -> Iterator[LiveServer]:
    env = {"DATABASE_URL": cluster.url(database), **options.pop("env", {})}
    with start_server(data, *arguments, env=env, **options) as live:
        yield live
