"""PostgreSQL cluster in the data folder, created by initdb and configured at each start."""

import contextlib
import os
import pwd
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from storage.server.data_folder import DataFolder
from storage.server.installation import MAJOR_VERSION, Installation
from storage.server.refusal import Refusal

NAME = "tablero"  # name of the database and of its owner
MEGABYTE = 1 << 20
_SOCKET_TIMEOUT: Final = 1.0  # seconds


def prepare(
    installation: Installation, folder: DataFolder, settings: Mapping[str, str], *, workers: int, small: bool
) -> None:
    """Prepare a startable cluster; the caller holds the data folder."""
    _check_version(installation, folder)
    _check_owner(installation, folder)
    make_socket_folder(installation, folder)
    _configure(folder, settings, workers, small=small)
    if not folder.database.exists():
        _initialize(installation, folder)


def is_ready(folder: DataFolder) -> bool:
    """Return whether the running PostgreSQL accepts connections."""
    try:
        lines = (folder.database / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return lines[7:8] != [] and lines[7].strip() == "ready" and _is_listening(folder)


def _is_listening(folder: DataFolder) -> bool:
    """Return whether a process listens on the socket; one that was killed has left its files."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_SOCKET_TIMEOUT)
        try:
            client.connect(str(folder.socket_folder / ".s.PGSQL.5432"))
        except OSError:
            return False
    return True


def remove_socket_folder(folder: DataFolder) -> None:
    """Remove the socket folder, which may be outside the data folder."""
    if folder.socket_folder.parent != folder.path:
        with contextlib.suppress(OSError):
            folder.socket_folder.rmdir()


def command(installation: Installation, folder: DataFolder) -> list[str]:
    config = folder.config / "postgresql.conf"
    return [
        str(installation.programs / "postgres"),
        "-D",
        str(folder.database),
        "-c",
        f"config_file={config}",
    ]


def major_version(folder: DataFolder) -> int | None:
    """Return the PostgreSQL version of the database; None without one."""
    try:
        return int((folder.database / "PG_VERSION").read_text())
    except FileNotFoundError:
        if folder.database.exists():
            raise Refusal(f"{folder.database} is not a PostgreSQL database; choose another folder.") from None
        return None


def _check_version(installation: Installation, folder: DataFolder) -> None:
    version = major_version(folder)
    if version in {None, installation.major}:
        return
    assert version is not None
    remedy = (
        "To convert it, start the server or run: tablero upgrade"
        if version < MAJOR_VERSION
        else "Use the version of Tablero that wrote it, or a newer one."
    )
    raise Refusal(
        f"The database in {folder.path} was written by PostgreSQL {version}, and this Tablero brings"
        f" {MAJOR_VERSION}. {remedy}"
    )


def _check_owner(installation: Installation, folder: DataFolder) -> None:
    if not folder.database.exists():
        return
    owner = folder.database.stat().st_uid
    runs_as = installation.user.uid if installation.user else os.geteuid()
    if owner != runs_as:
        raise Refusal(
            f"The database in {folder.path} belongs to the user with id {owner}, and PostgreSQL would run as {runs_as};"
            " start Tablero as the user who made it, or as root with --pg-user."
        )


def _initialize(installation: Installation, folder: DataFolder) -> None:
    """Initialize the cluster under a temporary name, so that an interrupted start leaves no partial one."""
    draft = folder.path / "database.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    installation.own(draft)
    initialize(installation, draft, "--data-checksums")
    create = f"CREATE DATABASE {NAME};\n"
    _run(installation, "postgres", "--single", "-F", "-D", draft, "postgres", text=create)
    _run(installation, "initdb", "--sync-only", draft)
    draft.rename(folder.database)


def initialize(installation: Installation, path: Path, *options: str) -> None:
    """Create an empty cluster, not yet synced to disk."""
    given = ("-U", NAME, "-E", "UTF8", "--no-locale", "-A", "peer", "--no-sync", *options)
    _run(installation, "initdb", path, *given)


def _run(installation: Installation, program: str, *arguments: str | Path, text: str = "") -> None:
    done = subprocess.run(
        [installation.programs / program, *arguments],
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        **installation.popen,
    )
    if done.returncode != 0:
        raise Refusal(f"The database could not be created: {_first_error(done.stderr)}")


def _first_error(output: str) -> str:
    """Return the error line from the output of initdb."""
    lines = output.strip().splitlines() or ["no reason given"]
    return next((line for line in lines if re.search(r"error: |FATAL: |PANIC: ", line)), lines[-1])


def make_socket_folder(installation: Installation, folder: DataFolder) -> None:
    path = folder.socket_folder
    try:
        path.mkdir(mode=0o700)
        installation.own(path)
    except FileExistsError:
        pass
    status = path.lstat()
    owner = installation.user.uid if installation.user else os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
        raise Refusal(f"{path} is not a private folder of the user PostgreSQL runs as; remove it.")


def _configure(folder: DataFolder, settings: Mapping[str, str], workers: int, *, small: bool) -> None:
    """Write PostgreSQL's configuration; its folder belongs to root, so no other user can plant a link in it."""
    folder.config.mkdir(exist_ok=True)
    folder.config.chmod(0o755)  # whatever the umask
    lines = {**_settings(folder, workers), **(_SMALL if small else {}), **settings}
    text = "".join(f"{name} = '{_quote(value)}'\n" for name, value in lines.items())
    _write(folder.config / "postgresql.conf", f"{HEADER}{text}include_if_exists = 'custom.conf'\n")
    _write(
        folder.config / "pg_hba.conf",
        "local all all peer map=tablero\nlocal replication all peer map=tablero\n",
    )
    _write(folder.config / "pg_ident.conf", f"tablero {user_name()} {NAME}\n")


HEADER = (
    "# Written anew at each start of Tablero; put settings of your own into custom.conf beside this file.\n"
)


def _settings(folder: DataFolder, workers: int) -> dict[str, str]:
    memory = _memory() // MEGABYTE
    return {
        "hba_file": str(folder.config / "pg_hba.conf"),
        "ident_file": str(folder.config / "pg_ident.conf"),
        "listen_addresses": "",
        "port": "5432",
        "unix_socket_directories": str(folder.socket_folder),
        "unix_socket_permissions": "0700",
        "cluster_name": NAME,
        # each worker: 12 lanes, a listener, a pool; and room for commands and people
        "max_connections": str(40 + 32 * workers),
        "shared_buffers": f"{_shared_buffers(memory, _size(folder.database) // MEGABYTE)}MB",
        "effective_cache_size": f"{max(memory // 2, 256)}MB",
        "work_mem": "16MB",
        "maintenance_work_mem": "128MB",
        "jit": "off",
        "random_page_cost": "1.1",
        "max_locks_per_transaction": "512",  # a dump locks every relation, and each table is one
        "wal_compression": "off",
        "wal_buffers": "16MB",
        "min_wal_size": "512MB",  # segments kept for reuse: a new one must be filled with zeros first
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "autovacuum_naptime": "20s",
        "autovacuum_vacuum_scale_factor": "0.05",
        "autovacuum_vacuum_insert_scale_factor": "0.1",
        "autovacuum_analyze_scale_factor": "0.02",
        "autovacuum_vacuum_cost_limit": "1000",
        "idle_in_transaction_session_timeout": "60s",
        "log_timezone": "UTC",
        "timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        "log_checkpoints": "off",
        "log_min_messages": "warning",
        "log_statement": "none",
        # statements carry the customers' data
        "log_min_error_statement": "panic",
        "log_parameter_max_length_on_error": "0",
        **(_ON_LINUX if sys.platform == "linux" else {}),
    }


# Settings for --small: the others take memory also while little is stored and written.
_SMALL: Final = {
    "shared_buffers": "64MB",
    "io_method": "sync",  # no processes for reading ahead
    "wal_buffers": "1MB",
    "max_locks_per_transaction": "128",
    "max_logical_replication_workers": "0",
    "maintenance_work_mem": "64MB",
    "min_wal_size": "64MB",
    "max_wal_size": "512MB",
}


def _shared_buffers(memory: int, stored: int) -> int:
    """Return the megabytes of shared buffers for the memory of the machine and what is stored.

    They are an eighth of the memory, at most 4 GiB, and no more than twice what is stored, as descriptors of buffers
    take a fiftieth of these even while they are empty. A database that grows is in the cache of the operating system
    until the next start.
    """
    enough = max(2 * stored, 512)
    return min(max(memory // 8, 128 if memory < 1024 else 256), enough, 4096)


def _size(database: Path) -> int:
    """Return the bytes of the files of relations."""
    total = 0
    for folder, _, names in os.walk(database / "base"):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(folder, name).stat().st_size
    return total


# after a crash: all files at once, instead of opening hundreds of thousands one by one
_ON_LINUX: Final = {"recovery_init_sync_method": "syncfs"}


def _memory() -> int:
    """Return the memory in bytes available to this process."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise Refusal(
            f"The user with id {os.geteuid()} has no name on this machine, which PostgreSQL asks for;"
            " run as a user that is known, or set DATABASE_URL."
        ) from None


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".new")
    draft.write_bytes(os.fsencode(text))  # as the names of folders in it
    draft.chmod(0o644)
    draft.replace(path)
