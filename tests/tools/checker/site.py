"""Servers on one database, the first with two workers and a link that can be cut, and what is done to them."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

import psutil
import psycopg

from storage.server.data_folder import DataFolder
from tests.live_server import ACCOUNT, KEY, LiveServer, start_server
from tests.ports import free_port
from tests.replication.postgres import Group
from tests.tools.checker.clients import Endpoint
from tests.tools.checker.history import Restored
from tests.tools.checker.levels import Violation
from tests.tools.checker.proxy import Proxy
from tests.tools.checker.rehearsal import Record, read_records

FIRST, SECOND = range(2)
HBA = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 trust\n"
REPLICA_SETTINGS = {"max_locks_per_transaction": "512", "recovery_init_sync_method": "syncfs"}


class Site:
    """One server, or two on the same database, perhaps with an archive, and a replica that the second one reads.

    The first may find its data in the folder `first`. Ports stay the same when a server is started again.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        servers: int = 2,
        has_archive: bool = False,
        has_replica: bool = False,
    ) -> None:
        self.data = folder / "first"
        self.servers: list[LiveServer | None] = [None] * servers
        self.output: list[str] = []  # output of stopped servers
        self.token = ""  # for the management API
        self.struck_at = 0.0  # when the last fault began
        self.late_kills = 0  # after the end of the long operation that they were to interrupt
        self.violations: list[Violation] = []  # found after long operations
        self.table = ""  # where clients work
        self.restored: list[Restored] = []
        self.folder = folder
        self._options = options
        self._archive = ("--archive", str(folder / "archive")) if has_archive else ()
        self._nodes = Group(folder / "nodes") if has_replica else None
        self.replica = None if self._nodes is None else self._nodes.node("replica", REPLICA_SETTINGS)
        self._ports = [free_port() for _ in self.servers]
        self._stacks = [ExitStack() for _ in self.servers]
        self.link = Proxy(self._ports[FIRST])

    @contextmanager
    def running(self) -> Iterator["Site"]:
        with self.link, ExitStack() as stack:
            for number in range(len(self.servers)):
                stack.callback(self.end, number)
                if number == FIRST and self._nodes is not None:
                    self._let_replicas_in()
                self.start(number)
                if number == FIRST and self._nodes is not None:
                    stack.callback(self._nodes.stop)
                    self._start_replica(self._nodes)
            yield self

    def _let_replicas_in(self) -> None:
        """Let PostgreSQL's user in, who is another one if this is root."""
        hba = self.folder / "pg_hba.conf"
        hba.write_text(HBA)
        data = DataFolder(self.data)
        data.create()
        data.config.mkdir(exist_ok=True)
        (data.config / "custom.conf").write_text(f"hba_file = '{hba}'\n")

    def _start_replica(self, nodes: Group) -> None:
        assert self.replica is not None
        conninfo = f"host={self._socket_folder} user=tablero dbname=tablero"
        nodes.copy_from(self.replica, conninfo, "--create-slot", "--slot", "replica")
        (self.replica.data / "pg_hba.conf").write_text(HBA)
        self.replica.start()

    def endpoints(self) -> list[Endpoint]:
        return [Endpoint(port, ACCOUNT, KEY) for port in (*self._ports, self.link.port)]

    def start(self, number: int, *, wait: bool = True) -> None:
        listen = ("--listen", f"127.0.0.1:{self._ports[number]}")
        if number == FIRST:
            options = ("--workers", "2", *listen, *self._archive, *self._options)
            started = start_server(self.data, *options, wait=wait)
        else:
            env = {
                "TABLERO_SECRET": (self.data / "secret").read_text().strip(),
                "DATABASE_URL": f"postgresql:///tablero?host={self._socket_folder}&user=tablero",
            }
            if self.replica is not None:
                env["TABLERO_REPLICAS"] = self.replica.url()
            started = start_server(self.folder / "second", *listen, env=env, wait=wait)
        self.servers[number] = self._stacks[number].enter_context(started)

    def end(self, number: int) -> None:
        """Stop a server in order; nothing happens to one that has ended."""
        self._stacks[number].close()
        if (server := self.servers[number]) is not None:
            self.output += server.output
        self.servers[number] = None

    def restart(self, number: int) -> None:
        self.end(number)
        self.start(number)

    @property
    def first(self) -> LiveServer:
        assert self.servers[FIRST] is not None
        return self.servers[FIRST]

    @property
    def _socket_folder(self) -> Path:
        return DataFolder(self.data).socket_folder

    def api_token(self) -> str:
        self.first.manage("user", "add", "robot", "--admin")
        self.token = self.first.add_token("robot", "checker")
        return self.token

    def rehearse(self, table: str, rules: str, seed: int) -> None:
        """Start a rehearsal in a table."""
        self.first.rehearse(rules, seed=seed, table=table)

    def end_rehearsal(self) -> list[Record]:
        """Stop the rehearsal, and return its records of writes."""
        self.first.end_rehearsal()
        with self._connected() as connection:
            return read_records(connection)

    def execute(self, *statements: str) -> None:
        with self._connected() as connection:
            for statement in statements:
                connection.execute(statement)

    def _connected(self) -> psycopg.Connection:
        conninfo = f"host={self._socket_folder} user=tablero dbname=tablero"
        return psycopg.connect(conninfo, autocommit=True)

    def logged_errors(self) -> list[str]:
        """Lines around each exception that a server has logged."""
        lines = [*self.output, *(line for it in self.servers if it is not None for line in it.output)]
        results = [
            "\n".join(lines[max(place - 10, 0) : place + 60])
            for place, line in enumerate(lines)
            if "Traceback" in line
        ]
        # on a busy machine a stopped server gives up waiting
        return [it for it in results if "timeout graceful shutdown exceeded" not in it]


# faults: each ends when all are there again, or will be without help

# errors of a fault whose target does not exist
GONE = (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError, IndexError, psycopg.OperationalError)


def happens(fault: "Fault", site: Site, dice: Random) -> bool:
    """Apply a fault, and return whether its target existed."""
    site.struck_at = time.monotonic()
    try:
        fault(site, dice)
    except GONE:
        return False
    return True


def kill_the_server(site: Site, dice: Random) -> None:
    site.first.kill()
    site.restart(FIRST)


def kill_everything(site: Site, dice: Random) -> None:
    server = psutil.Process(site.first.pid)
    family = [server, *server.children(recursive=True)]
    for process in family:
        _signal(process, signal.SIGSTOP)  # so that none has the time to do anything about it
    for process in family:
        _signal(process, signal.SIGKILL)
    site.first.process.wait(60)
    site.restart(FIRST)


def stop_the_server(site: Site, dice: Random) -> None:
    assert site.first.stop() == 0
    site.restart(FIRST)


def kill_the_other_server(site: Site, dice: Random) -> None:
    other = site.servers[SECOND]
    assert other is not None
    other.kill()
    site.restart(SECOND)


def kill_a_worker(site: Site, dice: Random) -> None:
    dice.choice(_children(site.first.pid, "storage.server.worker")).kill()


def kill_the_postmaster(site: Site, dice: Random) -> None:
    os.kill(site.first.postmaster(), signal.SIGKILL)


def kill_the_supervisor(site: Site, dice: Random) -> None:
    """Kill the process that starts the database again."""
    psutil.Process(site.first.postmaster()).parent().kill()


def kill_a_backend(site: Site, dice: Random) -> None:
    dice.choice(_children(site.first.postmaster(), "[local]")).kill()


def _children(pid: int, text: str) -> list[psutil.Process]:
    """Return the children with a text in their command line, except those that end meanwhile."""
    results = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            if text in " ".join(child.cmdline()):
                results.append(child)
    return results


def end_all_sessions(site: Site, dice: Random) -> None:
    site.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def kill_a_replica(site: Site, dice: Random) -> None:
    """Kill PostgreSQL's processes of the replica; reads go on elsewhere."""
    assert site.replica is not None
    site.replica.kill()
    site.replica.start()


def kill_while_flushes_are_late(site: Site, dice: Random) -> None:
    """Let each commit wait 0.1 s before it is flushed, with everything that others have written meanwhile."""
    site.execute(
        "ALTER SYSTEM SET commit_delay = 100000",
        "ALTER SYSTEM SET commit_siblings = 0",
        "SELECT pg_reload_conf()",
    )
    time.sleep(0.3 + 0.2 * dice.random())
    for name in ("commit_delay", "commit_siblings"):
        site.execute(f"ALTER SYSTEM RESET {name}")
    site.struck_at = time.monotonic()
    kill_the_postmaster(site, dice)


def stop_the_database_for_a_moment(site: Site, dice: Random) -> None:
    postmaster = psutil.Process(site.first.postmaster())
    family = [postmaster, *postmaster.children(recursive=True)]
    try:
        for process in family:
            _signal(process, signal.SIGSTOP)
        time.sleep(0.5 + dice.random())
    finally:
        for process in family:
            _signal(process, signal.SIGCONT)


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass


def cut_connections(site: Site, dice: Random) -> None:
    site.link.cut()
    time.sleep(0.2 * dice.random())
    site.link.mend()


def delay_connections(site: Site, dice: Random) -> None:
    """Delay data on connections; it arrives late, unless the connection is cut first."""
    site.link.hang()
    time.sleep(dice.random())
    if dice.random() < 0.5:
        site.link.cut()
    site.link.mend()


Fault = Callable[[Site, Random], None]
KILLS: tuple[Fault, ...] = (
    kill_the_server,
    kill_everything,
    kill_the_other_server,
    kill_a_worker,
    kill_the_postmaster,
    kill_the_supervisor,
    kill_a_backend,
    end_all_sessions,
    kill_while_flushes_are_late,
)
OTHERS: tuple[Fault, ...] = (
    stop_the_server,
    stop_the_database_for_a_moment,
    cut_connections,
    delay_connections,
)
