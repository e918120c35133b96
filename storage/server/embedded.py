"""Lifecycle of the embedded PostgreSQL, as seen by the rest of the server."""

import contextlib
import json
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from storage.health import disk
from storage.server import cluster, installation, supervisor
from storage.server.archive import archiver, archiving
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

SLOW = 3.0  # seconds of a start after which it is worth a line
LARGEST_LOG = 10 << 20
HUNG_AFTER = (
    60.0  # seconds in which PostgreSQL accepts no connection, after which it is killed and started again
)
PATIENCE = 30.0  # seconds that a command waits for the PostgreSQL of a live server

# after the time and the process
_MESSAGE: Final = re.compile(r" (LOG|FATAL|PANIC):  (.+)")
_IN_CONFIGURATION: Final = "contains errors"  # lines before name them
_NO_MISTAKE: Final = "skipping missing configuration file"

Say = Callable[[str], None]


class Embedded:
    """Running PostgreSQL, which ends with `stop` or with this process."""

    def __init__(self, plan: str, environment: Mapping[str, str], lock: int, say: Say) -> None:
        self._plan = plan
        self._environment = environment
        self._lock = lock
        self._say = say
        self._stopping = False
        self._log = Path(json.loads(plan)["log"])
        self._log_size = _size(self._log)  # before this start
        self._process = self._spawn()

    def wait_until_ready(self) -> None:
        """Wait until PostgreSQL accepts connections, however long crash recovery takes."""
        output = self._process.stdout
        assert output is not None
        warned = time.monotonic() + SLOW
        while not select.select([output], [], [], 0.5)[0]:
            if time.monotonic() > warned:
                self._say("Waiting for PostgreSQL, which replays its log after a crash ...")
                warned = float("inf")
        if output.readline().strip() != b"ready":
            self.stop()
            full = disk.problem(self._log.parent)
            reason = _last_words(self._log, self._log_size)
            raise Refusal(f"PostgreSQL did not start: {reason}{full and f' {full}'}")

    def keep(self) -> None:
        """Restart the supervisor from now on if it is killed."""
        threading.Thread(target=self._watch, name="supervisor", daemon=True).start()

    def stop(self) -> None:
        """Shut down fast: every acknowledged write is on disk, and the next start needs no recovery."""
        self._stopping = True
        with (
            contextlib.suppress(OSError),
            self._process,
        ):  # closes the pipe that keeps PostgreSQL running, and waits
            pass

    def stop_at_once(self) -> None:
        """Shut down immediately: no acknowledged write is lost, but the next start replays the WAL."""
        self._stopping = True
        self._process.terminate()

    def _watch(self) -> None:
        while not self._stopping:
            self._process.wait()
            if not self._stopping:
                self._say("The supervisor of PostgreSQL ended unexpectedly and is being started again.")
                time.sleep(0.5)
                self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, self._plan],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            # not ours: it may hold secrets
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", **self._environment},
            pass_fds=[self._lock],
            start_new_session=True,  # Ctrl-C is for the server, which then stops PostgreSQL in its own time
        )


@contextmanager
def running(
    options: Options,
    *,
    purpose: str,
    say: Say,
    settings: Mapping[str, str] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Embedded]:
    """Lock the data folder and run its PostgreSQL; ``meanwhile`` runs during the start."""
    folder = DataFolder(options.data)
    folder.create()
    with ExitStack() as stack:
        with _explaining(folder):
            lock = stack.enter_context(folder.held(purpose))
            programs = installation.find(options, folder)
            if not folder.database.exists():
                say(f"Creating the database in {folder.path} ...")
            archive = (
                archiving.configure(options, folder) if purpose == "serve" else archiving.Config.read(folder)
            )
        with started(
            options, programs, lock, say, archive=archive, settings=settings, meanwhile=meanwhile
        ) as embedded:
            yield embedded


@contextmanager
def started(
    options: Options,
    programs: installation.Installation,
    lock: int,
    say: Say,
    *,
    archive: archiving.Config | None = None,
    settings: Mapping[str, str] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Embedded]:
    """Run an installation's PostgreSQL on a data folder that the caller holds."""
    folder = DataFolder(options.data)
    with _explaining(folder):
        given = {**archiving.settings(folder, archive), **(settings or {})}
        cluster.prepare(programs, folder, given, workers=options.workers, small=options.small)
        plan = _plan(options, programs, folder, archive)
    embedded = Embedded(plan, archiving.environment(archive), lock, say)
    try:
        meanwhile()
        embedded.wait_until_ready()
        yield embedded
    finally:
        embedded.stop()
        cluster.remove_socket_folder(folder)


@contextmanager
def _explaining(folder: DataFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = disk.problem(folder.path) or f"{error.strerror}: {error.filename}."
        raise Refusal(f"The data folder cannot be used. {reason}") from None


@contextmanager
def attached(options: Options, *, purpose: str, say: Say) -> Iterator[None]:
    """Use the PostgreSQL of a running server, or run it during the block; raises Refusal without a database."""
    folder = DataFolder(options.data)
    if folder.server() is None:
        folder.refuse_missing()
    with attached_or_new(options, purpose=purpose, say=say):
        yield


@contextmanager
def attached_or_new(options: Options, *, purpose: str, say: Say) -> Iterator[None]:
    """Like ``attached``, but create a missing database."""
    folder = DataFolder(options.data)
    if folder.server() is None:
        with running(options, purpose=purpose, say=say):
            yield
        return
    deadline = time.monotonic() + PATIENCE
    while not cluster.is_ready(folder):
        if time.monotonic() > deadline:
            reason = disk.problem(folder.path) or f"See {folder.log}."
            raise Refusal(f"PostgreSQL of the running server accepts no connections. {reason}")
        if folder.server() is None:
            raise Refusal(f"The server that held {folder.path} has just ended; run the command again.")
        time.sleep(0.05)
    yield


def _plan(
    options: Options,
    programs: installation.Installation,
    folder: DataFolder,
    archive: archiving.Config | None,
) -> str:
    archiver_plan = archiving.plan(folder, archive)
    plan = {
        "command": cluster.command(programs, folder),
        "database": str(folder.database),
        "log": str(folder.log),
        "log_limit": LARGEST_LOG,
        "hung_after": HUNG_AFTER,
        "says_json": options.log_format == "json",
        "lock": str(folder.path / "database.lock"),
        "sockets": str(folder.socket_folder),
        "user": programs.popen,
        "archiver": [sys.executable, "-P", "-m", archiver.__name__, json.dumps(archiver_plan)]
        if archiver_plan
        else None,
    }
    return json.dumps(plan)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _last_words(log: Path, start: int) -> str:
    """Return the reason that a log gives after a position, or from its beginning if it was started over."""
    try:
        with log.open(errors="replace") as file:
            file.seek(start if start <= _size(log) else 0)
            lines = file.read().splitlines()
    except OSError:
        return f"see {log}."
    return f"{_reason(lines) or 'no reason given'} (see {log})."


def _reason(lines: list[str]) -> str:
    """Return the reason that lines of PostgreSQL's log give."""
    messages = [(match[1], match[2]) for match in map(_MESSAGE.search, lines) if match is not None]
    fatal = [text for severity, text in messages if severity != "LOG"]
    if fatal and _IN_CONFIGURATION in fatal[-1]:
        mistakes = [text for severity, text in messages if severity == "LOG" and _NO_MISTAKE not in text]
        return "; ".join((*mistakes, fatal[-1]))
    errors = [line for line in lines if "error" in line.lower()]
    # without its control file, PostgreSQL says in three lines what it misses, and does not call it an error
    return fatal[-1] if fatal else errors[-1] if errors else " ".join(lines[-3:])
