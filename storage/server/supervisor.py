"""Supervisor process that keeps PostgreSQL running as long as the server."""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

STEADY = 60.0  # seconds after which a start counts as good, and the next one need not wait
LONGEST_WAIT = 30.0
ORPHAN_PATIENCE = 20.0
# PostgreSQL 18 never ends that is asked to while it recovers from the crash of a backend; but writing what is in memory
# to the files of thousands of tables may take minutes, so only seconds without any work count
SHUTDOWN_PATIENCE = 30.0
LOG_INTERVAL = 60.0  # seconds between looks at the size of PostgreSQL's log
LOOK_INTERVAL = 10.0  # seconds between questions whether PostgreSQL accepts connections, and for an answer
SSL_REQUEST = bytes.fromhex("0000000804d2162f")  # any PostgreSQL answers it with a letter before all else
ARCHIVER_PAUSE = 1.0  # seconds between two starts of the archiver
ARCHIVER_PATIENCE = 5.0  # seconds until it is killed, in the middle of a copy that is then made again
SEGMENT = 16 << 20
PR_SET_PDEATHSIG = 1
# a system without memory chooses a backend before the postmaster, without which no other could be started
ENVIRONMENT = ("PATH", "LC_ALL")
KILLED_FIRST = {"PG_OOM_ADJUST_FILE": "/proc/self/oom_score_adj", "PG_OOM_ADJUST_VALUE": "300"}


class Supervisor:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.command: list[str] = plan["command"]
        self.database = Path(plan["database"])
        self.log = Path(plan["log"])
        self.log_limit: int = plan["log_limit"]
        self.says_json: bool = plan["says_json"]
        self.hung_after: float = plan["hung_after"]
        self.look_interval = min(LOOK_INTERVAL, self.hung_after / 4)
        self.lock = Path(plan["lock"])
        self.sockets = Path(plan["sockets"])
        self.user: dict[str, Any] = plan["user"]
        self.archiver: list[str] | None = plan["archiver"]
        self.archiving: subprocess.Popen[bytes] | None = None
        self.archiver_began = -ARCHIVER_PAUSE
        self.was_ready = False
        self.at_once = False
        self.wakeup, descriptor = os.pipe()
        os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop_at_once)

    def run(self) -> int:
        try:
            return self._run()
        finally:
            self._end_archiver()

    def _run(self) -> int:
        wait = 0.0
        while True:
            if not self._sleep(wait):
                return 0
            started = time.monotonic()
            try:
                with open(self.lock, "w", opener=privately) as lock:
                    os.fchmod(lock.fileno(), 0o600)  # other users could lock that of an older version
                    if not self._others_are_gone(lock.fileno()):
                        return 0
                    child = self._start(lock.fileno())
            except OSError as error:  # such as a file system that has become read-only
                what = f"could not be started ({error.strerror}) and is tried again."
            else:
                if not self._watch(child):
                    return 0
                what = f"ended unexpectedly ({describe(child.returncode)}) and is being started again."
            if not self.was_ready:
                return 1
            wait = 0.0 if time.monotonic() - started > STEADY else min(max(0.5, wait * 2), LONGEST_WAIT)
            self._say(f"PostgreSQL {what}{' The disk is full.' if is_full(self.database) else ''}")

    def _start(self, lock: int) -> subprocess.Popen[bytes]:
        # no other supervisor runs (see the lock): the pids in these files are old, and may be other programs' by now
        for old in (self.database / "postmaster.pid", *self.sockets.glob(".s.PGSQL.*")):
            with contextlib.suppress(FileNotFoundError):
                old.unlink()
        bound(self.log, self.log_limit)
        with open(self.log, "ab", buffering=0, opener=privately) as log:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.database,
                # not the credentials of the archiver
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ} | KILLED_FIRST,
                pass_fds=[lock],  # inherited by every backend: free again when the last of them is gone
                preexec_fn=die_with_parent,
                **self.user,
            )

    def _watch(self, child: subprocess.Popen[bytes]) -> bool:
        """Wait until PostgreSQL exits by itself (True) or is shut down with or by the server (False)."""
        is_ready = False
        answered_at = bounded_at = time.monotonic()
        while child.poll() is None:
            is_archiving = self._keep_archiver()
            if not is_ready and self._is_ready(child.pid):
                is_ready = True
                if not self.was_ready:
                    self.was_ready = True
                    report("ready")
            pause = self.look_interval if is_archiving else ARCHIVER_PAUSE
            if not self._sleep(pause if is_ready else 0.01):
                self._shut_down(child)
                return False
            now = time.monotonic()
            if not is_ready or self._answers():
                answered_at = time.monotonic()
            elif now - answered_at > self.hung_after:
                self._say(
                    f"PostgreSQL has accepted no connection for {now - answered_at:.0f} seconds and is killed."
                )
                kill_family(child)
            if is_ready and now - bounded_at > LOG_INTERVAL:
                bounded_at = now
                bound(self.log, self.log_limit)
        return True

    def _answers(self) -> bool:
        """Return whether PostgreSQL responds on its socket; a hanging one accepts connections but stays silent."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(self.look_interval)
                client.connect(str(self.sockets / ".s.PGSQL.5432"))
                client.sendall(SSL_REQUEST)
                return client.recv(1) != b""
        except OSError:
            return False

    def _keep_archiver(self) -> bool:
        """Start the archiver, restarting it when it is killed; return False during the pause before that."""
        if self.archiver is None or (self.archiving is not None and self.archiving.poll() is None):
            return True
        if time.monotonic() - self.archiver_began < ARCHIVER_PAUSE:
            return False
        self.archiver_began = time.monotonic()
        # its standard input is a pipe that ends with this process
        self.archiving = subprocess.Popen(self.archiver, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        return True

    def _end_archiver(self) -> None:
        if self.archiving is not None:
            assert self.archiving.stdin is not None
            self.archiving.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.archiving.wait(ARCHIVER_PATIENCE)
            self.archiving.kill()

    def _shut_down(self, child: subprocess.Popen[bytes]) -> None:
        worked_at, work = time.monotonic(), -1
        quit_at: float | None = None
        child.send_signal(signal.SIGQUIT if self.at_once else signal.SIGINT)
        while child.poll() is None:
            select.select([self.wakeup], [], [], 1.0)
            os.read(self.wakeup, 4096) if select.select([self.wakeup], [], [], 0)[0] else None
            if work != (work := work_of_children(child.pid)):
                worked_at = time.monotonic()
            now = time.monotonic()
            if self.at_once or now - worked_at > SHUTDOWN_PATIENCE:
                child.send_signal(signal.SIGQUIT)
                quit_at = quit_at or now
            if quit_at is not None and now - quit_at > SHUTDOWN_PATIENCE:
                kill_family(child)  # one that was stopped takes no signal

    def _sleep(self, seconds: float | None) -> bool:
        """Sleep until a signal or timeout; return False if the server is gone or requests a shutdown."""
        readable, _, _ = select.select([0, self.wakeup], [], [], seconds)
        if self.wakeup in readable:
            os.read(self.wakeup, 4096)
        return not self.at_once and 0 not in readable

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self.database / "postmaster.pid").read_text(errors="replace").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"

    def _others_are_gone(self, lock: int) -> bool:
        """Wait for processes of an earlier PostgreSQL in this folder; return False if the server ends."""
        began = time.monotonic()
        asked: set[signal.Signals] = set()
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            how = signal.SIGINT if time.monotonic() - began < ORPHAN_PATIENCE else signal.SIGQUIT
            if how not in asked:
                asked.add(how)
                self._ask_orphan_to_stop(how)
            self._keep_archiver()  # it waits until its log is archived, and its own archiver ended with its supervisor
            if not self._sleep(0.02):
                return False

    def _ask_orphan_to_stop(self, how: signal.Signals) -> None:
        """Signal a postmaster whose supervisor was killed, which may still be running."""
        with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
            pid = int((self.database / "postmaster.pid").read_text(errors="replace").splitlines()[0])
            if "postgres" in name_of_process(pid):
                os.kill(pid, how)

    def _stop_at_once(self, *_: object) -> None:
        self.at_once = True

    def _say(self, text: str) -> None:
        say(in_json(text) if self.says_json else text)


def kill_family(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children, which hold the lock and may be stopped, too."""
    children = children_of(process.pid)
    process.kill()
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """Return the child processes; none without /proc."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def name_of_process(pid: int) -> str:
    """Return the name of a running program, by /proc or ps."""
    if sys.platform == "linux":
        return Path(f"/proc/{pid}/comm").read_text()
    command = ["ps", "-o", "comm=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def work_of_children(pid: int) -> int:
    """Return the CPU time of a process's children in ticks; 0 without /proc."""
    work = 0
    for child in children_of(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            work += int(fields[11]) + int(fields[12])
    return work


def bound(log: Path, limit: int) -> None:
    """Truncate a log above a size in bytes, keeping a copy as `.1`; PostgreSQL has it open for appending."""
    with contextlib.suppress(OSError):
        if log.stat().st_size <= limit:
            return
        try:
            shutil.copy2(log, log.with_suffix(".log.1"))
        finally:  # also when the disk is full
            os.truncate(log, 0)


def is_full(folder: Path) -> bool:
    """Return whether the disk lacks space for another WAL segment."""
    return shutil.disk_usage(folder).free < 2 * SEGMENT


def privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def die_with_parent() -> None:
    # after the change of user, which would clear it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def describe(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"status {status}"


def report(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")


def in_json(text: str) -> str:
    """Format a message with the fields of the server's JSON log, without importing its modules."""
    return json.dumps(
        {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "level": "error",
            "logger": "storage.server.supervisor",
            "message": text,
            "pid": os.getpid(),
        }
    )


def say(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, line.encode() + b"\n")


if __name__ == "__main__":
    sys.exit(Supervisor(json.loads(sys.argv[1])).run())
