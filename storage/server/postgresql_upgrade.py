"""Conversion of a data folder from an older PostgreSQL by pg_upgrade."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psycopg

from storage.server import cluster, embedded, installation
from storage.server.backups import contents, leash, programs
from storage.server.backups.stores import synchronize
from storage.server.cluster import NAME
from storage.server.data_folder import DataFolder
from storage.server.installation import MAJOR_VERSION, Installation
from storage.server.options import Options
from storage.server.refusal import Refusal

Say = Callable[[str], None]

_DRAFT: Final = "upgrade"  # the folder in the data folder in which the converted database is made
_CONVERTED: Final = "database.converted"  # a complete one, while the two are exchanged
_NEEDED: Final = 256 << 20  # bytes beside the copy of the database
_PATIENCE: Final = 60.0  # seconds
_ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def convert(options: Options, say: Say) -> None:
    """Convert the database if an older PostgreSQL wrote it; raises Refusal if that is impossible."""
    folder = DataFolder(options.data)
    if not _is_older(folder) and not _is_exchanging(folder):
        return
    with folder.held("upgrade") as lock:
        if _is_exchanging(folder):
            (folder.path / _CONVERTED).rename(folder.database)
        if _is_older(folder):
            try:
                _convert(options, folder, lock, say)
            except OSError as error:
                raise Refusal(f"The database cannot be converted: {error}.") from None
            except psycopg.Error as error:
                reason = str(error).strip().splitlines()[0].rstrip(".")
                raise Refusal(f"The database cannot be read for its conversion: {reason}.") from None


def _is_older(folder: DataFolder) -> bool:
    return (cluster.major_version(folder) or MAJOR_VERSION) < MAJOR_VERSION


def _is_exchanging(folder: DataFolder) -> bool:
    return (folder.path / _CONVERTED).exists() and not folder.database.exists()


def _convert(options: Options, folder: DataFolder, lock: int, say: Say) -> None:
    major = cluster.major_version(folder)
    assert major is not None
    draft = DataFolder(folder.path / _DRAFT)
    _end_abandoned(folder, draft)
    for path in (draft.path, folder.path / _CONVERTED):
        _remove(path)
    draft.create()
    old = installation.find_complete(options, folder, major, draft.path / "old")
    new = installation.find_complete(options, folder, MAJOR_VERSION, draft.path / "new")
    _check_space(folder)
    say(f"Converting the database from PostgreSQL {major} to {MAJOR_VERSION} ...")
    # also repairs what a crash has left
    with embedded.started(options, old, lock, say), contents.connect(options) as connection:
        reading = contents.read(connection)
    _run_pg_upgrade(old, new, folder, draft)
    beside = replace(options, data=draft.path)
    with embedded.started(beside, new, lock, say):
        programs.run(beside, "vacuumdb", "--analyze-only", "--missing-stats-only", "--quiet", NAME)
        with contents.connect(beside) as connection:
            if differences := contents.differences(connection, reading.relations):
                raise Refusal(
                    f"The converted database differs from the old one, which is unchanged. {differences[0]}"
                )
    kept = _exchange(folder, draft, major)
    say(
        f"The database is converted. The old one is kept in {kept}; delete it when you do not need it any more."
    )


def _end_abandoned(folder: DataFolder, draft: DataFolder) -> None:
    """Stop processes left by a killed conversion, as the servers started by pg_upgrade outlive it."""
    deadline = time.monotonic() + _PATIENCE
    while processes := [pid for pid, line in _processes() if _is_of_conversion(line, folder, draft)]:
        if time.monotonic() > deadline:
            raise Refusal(
                f"Processes of an earlier conversion do not end: {', '.join(map(str, processes))}. End them."
            )
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)  # for PostgreSQL, an immediate shutdown
        time.sleep(0.1)


def _is_of_conversion(line: str, folder: DataFolder, draft: DataFolder) -> bool:
    is_program = re.search(r"/bin/(postgres|pg_\w+|psql|initdb|vacuumdb)\b", line) is not None
    return is_program and any(str(path) in line for path in (draft.path, folder.database))


def _processes() -> Iterator[tuple[int, str]]:
    """Return the processes of this machine with their command lines."""
    proc = Path("/proc")
    if not (proc / "self" / "cmdline").exists():
        shown = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True
        )
        for line in shown.stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            yield int(pid), command
        return
    for path in proc.glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _remove(path: Path) -> None:
    """Remove a folder, retrying while a terminated process still writes to it."""
    deadline = time.monotonic() + _PATIENCE
    while path.exists():
        try:
            shutil.rmtree(path)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _check_space(folder: DataFolder) -> None:
    size = sum(path.lstat().st_size for path in folder.database.rglob("*"))
    free = shutil.disk_usage(folder.path).free
    if free < size + _NEEDED:
        raise Refusal(
            f"The disk of {folder.path} is too full to convert the database: {free >> 20:,} MiB are free, and a copy of"
            f" the database needs {size + _NEEDED >> 20:,} MiB. Make room on it."
        )


def _run_pg_upgrade(old: Installation, new: Installation, folder: DataFolder, draft: DataFolder) -> None:
    draft.database.mkdir(mode=0o700)
    work = draft.path / "work"  # where pg_upgrade writes, as another user than root
    work.mkdir(mode=0o700)
    for path in (draft.database, work):
        new.own(path)
    # both must have checksums, or neither
    control = _run(old, "pg_controldata", folder.database).stdout
    has_checksums = re.search(r"checksum version: +0$", control, re.MULTILINE) is None
    cluster.initialize(new, draft.database, "--data-checksums" if has_checksums else "--no-data-checksums")
    cluster.make_socket_folder(new, draft)
    name = new.user.name if new.user else cluster.user_name()
    (work / "pg_hba.conf").write_text("local all all peer map=upgrade\n")
    (work / "pg_ident.conf").write_text(f"upgrade {name} {NAME}\n")
    for path in work.iterdir():
        new.own(path)
    # names without a folder: these options pass through a shell, and both servers start in this one
    settings = "-c hba_file=pg_hba.conf -c ident_file=pg_ident.conf -c max_locks_per_transaction=512"
    done = _run(
        new,
        "pg_upgrade",
        *("--username", NAME, "--jobs", str(os.cpu_count() or 1), "--socketdir", draft.socket_folder),
        *("--old-bindir", old.programs, "--old-datadir", folder.database, "--old-options", settings),
        *("--new-bindir", new.programs, "--new-datadir", draft.database, "--new-options", settings),
        folder=work,
    )
    if done.returncode:
        raise Refusal(
            f"pg_upgrade failed, and the database is as before: {_reason(done)} Its logs are in {draft.database}."
        )
    if not has_checksums:
        _run(new, "pg_checksums", "--enable", "--pgdata", draft.database)


def _run(
    programs: Installation, program: str, *arguments: str | Path, folder: Path = Path("/")
) -> subprocess.CompletedProcess[str]:
    """Run a program tied to this process."""
    user = [f"--user={programs.user.uid}:{programs.user.gid}"] if programs.user else []
    command = [sys.executable, "-I", "-S", leash.__file__, *user, programs.programs / program, *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=folder,
        env=_ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
    return subprocess.CompletedProcess(command, process.returncode, output)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()] or ["no reason given"]
    return next((line for line in lines if "fatal" in line.lower() or "error" in line.lower()), lines[-1])


def _exchange(folder: DataFolder, draft: DataFolder, major: int) -> Path:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    kept = folder.path / f"database.{major}.{stamp}"
    converted = folder.path / _CONVERTED
    os.sync()
    draft.database.rename(converted)
    synchronize(folder.path)
    folder.database.rename(kept)
    converted.rename(folder.database)  # after a crash before this, the next start does it
    synchronize(folder.path)
    shutil.rmtree(draft.path)
    return kept
