"""Data folder of a server: the layout of its files, and the lock on it."""

import fcntl
import hashlib
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from storage.health import disk
from storage.server.refusal import Refusal

LONGEST_SOCKET_FOLDER = (
    80  # a socket address holds 104 bytes on macOS, 108 on Linux, with "/.s.PGSQL.5432.lock"
)
_MARKS = {"database", "secret", "database.lock"}  # a folder with one of these was a data folder before
_NAMES = {
    "archive",
    "before-upgrade",
    "config",
    "database.converted",
    "database.new",
    "drill",
    "last-backup.json",
    "lock",
    "logs",
    "lost+found",
    "postgres.log",
    "postgres.log.1",
    "restore.new",
    "restored.json",
    "run",
    "upgrade",
}
PATIENCE = 60.0  # seconds for a process that is leaving the folder


@dataclass(frozen=True, slots=True)
class DataFolder:
    path: Path

    @property
    def option(self) -> str:
        """Return the option that names the folder, for a command to copy into a shell."""
        return f"--data {shlex.quote(str(self.path))}"

    @property
    def database(self) -> Path:
        return self.path / "database"

    @property
    def config(self) -> Path:
        return self.path / "config"

    @property
    def archiving(self) -> Path:
        """Return the folder with the archiver's state."""
        return self.path / "archive"

    @property
    def drill(self) -> Path:
        """Return the folder into which drills restore."""
        return self.path / "drill"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    @property
    def socket_folder(self) -> Path:
        """Return the folder of PostgreSQL's socket: in the data folder, or in /tmp if libpq cannot take that path."""
        folder = self.path / "run"
        encoded, is_list = os.fsencode(folder), "," in str(folder)
        if (
            len(encoded) <= LONGEST_SOCKET_FOLDER
            and encoded == str(folder).encode(errors="replace")
            and not is_list
        ):
            return folder
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path("/tmp") / f"tablero-{os.getuid()}-{digest}"  # noqa: S108 (ownership is checked)

    def create(self) -> None:
        """Create the folder, or accept an empty or former data folder; only its user can access it then.

        Raises Refusal for any other folder.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise Refusal(f"{self.path} is a file; choose a folder with --data DIR.") from None
        except OSError as error:
            raise Refusal(
                f"The data folder {self.path} cannot be created ({error.strerror}); choose another with --data DIR."
            ) from None
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            reason = disk.problem(self.path) or f"The data folder {self.path} is not writable for you."
            raise Refusal(f"{reason} Or choose another with --data DIR.")
        self._refuse_other_files()
        with suppress(OSError):  # a volume that another user owns, or that is read-only
            # root's PostgreSQL, another user, passes through
            self.path.chmod(0o701 if os.geteuid() == 0 else 0o700)

    def refuse_missing(self) -> None:
        """Raise Refusal if the folder has no database."""
        if not self.database.exists():
            raise Refusal(
                f"There is no database in {self.path}. Start a server there first, or name its folder with --data DIR."
            )

    def _refuse_other_files(self) -> None:
        names = {path.name for path in self.path.iterdir()}
        if names & _MARKS:
            return
        others = sorted(name for name in names - _NAMES if not name.startswith(("secret.", "postgresql-")))
        if others:
            raise Refusal(
                f"The folder {self.path} has files of something else, such as {others[0]}; choose an empty one with"
                " --data DIR."
            )

    @contextmanager
    def held(self, purpose: str) -> Iterator[int]:
        """Lock the folder; yields the descriptor of the lock, which children may inherit."""
        descriptor = self._open_lock()
        try:
            self._take(descriptor)
            while not os.path.samestat(os.fstat(descriptor), (self.path / "lock").stat()):
                os.close(descriptor)  # another folder has taken the place of the one that was waited for
                descriptor = self._open_lock()
                self._take(descriptor)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {purpose}\n".encode(), 0)
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_lock(self) -> int:
        try:
            return os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError:
            raise Refusal(f"The data folder {self.path} belongs to another user; choose another.") from None

    def server(self) -> int | None:
        """Return the process id of the server that holds this folder; None without one."""
        pid, purpose = self._holder()
        if purpose != "serve" or not self._is_locked():
            return None
        return pid if _is_alive(pid) else None

    def _take(self, descriptor: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not _try_lock(descriptor):
            pid, purpose = self._holder()
            # a command, or the database of a server that was killed, is gone in a moment
            if (purpose == "serve" and _is_alive(pid)) or time.monotonic() > deadline:
                raise Refusal(
                    f"The data folder {self.path} is in use by another Tablero (process {pid});"
                    " stop that one or choose another folder with --data DIR."
                )
            time.sleep(0.02)

    def _is_locked(self) -> bool:
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _try_lock(descriptor)
        finally:
            os.close(descriptor)

    def _holder(self) -> tuple[int, str]:
        try:
            pid, _, purpose = (self.path / "lock").read_text().strip().partition(" ")
            return int(pid), purpose
        except (OSError, ValueError):
            return 0, ""


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0
