"""PostgreSQL's backup and restore programs, run without credentials in their arguments."""

import io
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from psycopg.pq import Conninfo

from storage.server import database, installation
from storage.server.backups import leash
from storage.server.options import Options
from storage.server.refusal import Refusal

Say = Callable[[str], None]

_INTERVAL: Final = 5.0  # seconds between two lines about progress
_REMEDIES: Final = {
    "No space left on device": "The disk is full: make room on it, or choose another folder.",
    "no pg_hba.conf entry for replication": "The server was started by an older version of Tablero: restart it.",
    "Permission denied": "Run the command as the user who runs the server, with a folder that this user may write to.",
    "server version mismatch": "The database server is newer than the pg_dump of this package.",
    "WAL summarization": "Make a full backup, or set summarize_wal = on in config/custom.conf and restart the server.",
    "WAL summaries are required": "Make a full backup: the database no longer knows what changed since the last one.",
    "checksum error": "See which pages are damaged, and what to do: tablero doctor --pages",
    "out of shared memory": "Give the database a larger max_locks_per_transaction: each table takes a lock.",
}


class ProgramFailed(Refusal):
    """A PostgreSQL program failed."""

    def __init__(self, program: str, lines: list[str]) -> None:
        super().__init__(_reason(program, lines))
        # it was an incremental backup, and a full one could succeed
        self.needs_full = re.search("WAL summar|manifest|incremental", "\n".join(lines)) is not None


def run(
    options: Options, program: str, *arguments: str | Path, say: Say | None = None, lock: int | None = None
) -> None:
    """Run a program on the database, tied to this process; raises ProgramFailed."""
    with reading(options, program, *arguments, say=say, lock=lock) as output:
        while output.read(1 << 20):
            pass


@contextmanager
def reading(
    options: Options, program: str, *arguments: str | Path, say: Say | None = None, lock: int | None = None
) -> Iterator[IO[bytes]]:
    """Yield the output of a program on the database, like ``run``."""
    program_path = installation.packaged_programs() / program
    command = [sys.executable, "-I", "-S", leash.__file__, str(program_path), *map(str, arguments)]
    lines: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(options),
        pass_fds=[] if lock is None else [lock],  # also for processes that outlive this one
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        listener = threading.Thread(target=_listen, args=(process.stderr, lines, say), daemon=True)
        listener.start()
        try:
            yield process.stdout
        except tarfile.TarError:  # the program failed
            if not _fails(process, listener):
                raise
        except BaseException:
            process.stdin.close()  # ends the program
            raise
        if _fails(process, listener):
            raise ProgramFailed(program, lines)


def _fails(process: "subprocess.Popen[bytes]", listener: threading.Thread) -> bool:
    process.wait()
    listener.join()
    return process.returncode != 0


def _listen(output: IO[bytes], lines: list[str], say: Say | None) -> None:
    """Collect a program's output, and report its progress."""
    shown_at = time.monotonic()
    with io.TextIOWrapper(output, errors="replace") as said:
        for line in said:
            progress = re.search(r"\((\d+)%\)", line)
            if progress is None:
                lines.append(line.strip())
            elif say is not None and time.monotonic() - shown_at > _INTERVAL:
                shown_at = time.monotonic()
                say(f"{progress[1]} % ...")


def environment(options: Options) -> Mapping[str, str]:
    """Return the environment for PostgreSQL's programs, with libpq's variables for the connection."""
    parameters = database.parameters(options)
    names = {it.keyword.decode(): it.envvar.decode() for it in Conninfo.get_defaults() if it.envvar}
    given = {names[name]: value for name, value in parameters.items() if name in names}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C",
        **given,
    }


def _reason(program: str, lines: list[str]) -> str:
    errors = (
        [line for line in lines if "error:" in line or "FATAL:" in line] or lines[-1:] or ["no reason given"]
    )
    text = re.sub(rf"^{program}: (error: )?", "", errors[0]).rstrip(".")
    remedy = next((remedy for symptom, remedy in _REMEDIES.items() if symptom in "\n".join(lines)), "")
    return f"{program} failed: {text}. {remedy}".strip()
