"""Registry of this user's running servers, so that commands do not use a wrong database."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from storage.server.data_folder import DataFolder
from storage.server.options import PREFIX, Options
from storage.server.refusal import Refusal


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Running server; ``data`` is None for a server on DATABASE_URL."""

    pid: int
    data: Path | None


@contextmanager
def announced(options: Options) -> Iterator[None]:
    """Register the server during the block, for this user's commands."""
    path = _folder() / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    described = {"pid": os.getpid(), "data": None if options.database_url else str(options.data)}
    descriptor = None
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(described).encode())
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
            os.close(descriptor)


def list_running() -> list[RunningServer]:
    """Return this user's running servers, removing the entries of killed ones."""
    servers = []
    for path in sorted(_folder().glob("*.json")):
        with suppress(OSError, ValueError, KeyError), path.open() as file:
            if _is_locked(file.fileno()):
                described = json.load(file)
                data = described["data"]
                servers.append(RunningServer(described["pid"], None if data is None else Path(data)))
            else:
                path.unlink()
    return servers


def refuse_ambiguous(options: Options, environ: Mapping[str, str]) -> None:
    """Raise Refusal if no database was named, and a running server uses another than the default one."""
    if environ.get(f"{PREFIX}DATA") or options.database_url or DataFolder(options.data).server() is not None:
        return
    others = list_running()
    if not others:
        return
    running = " ".join(_describe(it) for it in others)
    named = " or ".join(DataFolder(it.data).option for it in others if it.data) or "DATABASE_URL"
    raise Refusal(
        f"No server runs in the default data folder {options.data}. {running} Name the database of this command:"
        f" {named}, or {DataFolder(options.data).option} for the default folder."
    )


def _describe(server: RunningServer) -> str:
    where = "with the database of DATABASE_URL" if server.data is None else f"in {server.data}"
    return f"A server of yours (process {server.pid}) runs {where}."


def _folder() -> Path:
    return platformdirs.user_state_path("tablero") / "servers"


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
