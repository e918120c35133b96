"""Back up a server: its database, its secret and what describes them, while it runs or not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from storage.operations.health import last_backup, release
from storage.operations.health.last_backup import Kind
from storage.server import embedded, secret
from storage.server.backups import contents, programs, sealing
from storage.server.backups.backup_folder import (
    MANIFEST,
    Backup,
    BackupFolder,
    SecretIn,
    digests_without_manifest,
    synchronize,
    verify,
    wal_end,
    write_private,
)
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

Say = programs.Say

_NEEDED: Final = 64 << 20  # bytes beside the database: the log of what is written meanwhile


@dataclass(frozen=True, slots=True)
class BackupRequest:
    folder: Path
    passphrase: bytes | None = None
    is_incremental: bool = False
    keep: int | None = None
    is_recorded: bool = True  # as the last backup of the server


def back_up(options: Options, request: BackupRequest, say: Say) -> Backup:
    """Return a new backup, which is complete, verified and on disk."""
    check(options, request)
    with _database(options, say):
        return back_up_running(options, request, say)


def back_up_running(options: Options, request: BackupRequest, say: Say) -> Backup:
    """Return a new backup like ``back_up``, for the process that runs the database."""
    try:
        with BackupFolder(request.folder).held() as lock:
            return _back_up(options, request, lock, say)
    except OSError as error:
        raise Refusal(
            f"The backup cannot be written to {request.folder} ({error.strerror}): make room on its disk, or choose"
            " another folder."
        ) from None


def check(options: Options, request: BackupRequest) -> None:
    """Raise Refusal for a backup that could never succeed."""
    secret.check(options)
    if options.database_url and request.is_incremental:
        raise Refusal(
            "An incremental backup needs the embedded database; with DATABASE_URL, leave --incremental out."
        )
    if not options.database_url and request.folder.resolve().is_relative_to(options.data.resolve()):
        raise Refusal(
            f"{request.folder} is in the data folder; choose a folder outside, on another disk at best."
        )


@contextmanager
def _database(options: Options, say: Say) -> Iterator[None]:
    if options.database_url:
        yield
        return
    with embedded.attached(options, purpose="backup", say=say):
        yield


def _back_up(options: Options, request: BackupRequest, lock: int, say: Say) -> Backup:
    folder = BackupFolder(request.folder)
    started_at = datetime.now(UTC)
    parent = _parent(folder) if request.is_incremental else None
    with folder.draft(started_at) as (draft, final):
        kept = _write_secret(options, request.passphrase, draft, say)
        if options.database_url:
            relations, version = _dump(options, draft, lock)
        else:
            relations, version = _copy(options, draft, parent, lock, say)
            _copy_settings(options, draft)
        say("Verifying the backup ...")
        backup = Backup(
            path=draft,
            kind=_kind(options, parent),
            version=release.version(),
            postgresql=version,
            started_at=started_at,
            finished_at=datetime.now(UTC),
            size=sum(path.stat().st_size for path in draft.rglob("*") if path.is_file()),
            wal="" if options.database_url else wal_end(draft / "database"),
            parent=parent.path.name if parent else "",
            secret=kept,
            relations=relations,
            files=digests_without_manifest(draft),
        )
        backup.write()
        verify(backup)
        synchronize(draft)
        draft.rename(final)
        synchronize(folder.path)
    if request.is_recorded and options.data.is_dir():
        made = last_backup.LastBackup(started_at, str(final), backup.size, backup.kind)
        last_backup.record(options.data, made)
    if request.keep is not None:
        for name in folder.delete_older(request.keep):
            say(f"Deleted the older backup {name}.")
    return Backup.read(final)


def _kind(options: Options, parent: Backup | None) -> Kind:
    if options.database_url:
        return Kind.DUMP
    return Kind.FILES if parent is None else Kind.INCREMENTAL


def _parent(folder: BackupFolder) -> Backup:
    found = [it for it in folder.backups() if it.kind is not Kind.DUMP]
    if not found:
        raise Refusal(
            f"There is no backup in {folder.path} to continue; make a full one first, without --incremental."
        )
    return found[-1]


def _copy(
    options: Options, draft: Path, parent: Backup | None, lock: int, say: Say
) -> tuple[dict[str, contents.Relation], str]:
    before, version = _read(options, None if parent else draft.parent)
    # the checkpoint at once: a spread one takes minutes, as a quarter of an hour lies between two
    arguments: list[str | Path] = [
        "--pgdata",
        draft / "database",
        "--checkpoint",
        "fast",
        "--wal-method",
        "stream",
    ]
    arguments += ["--manifest-checksums", "SHA256", "--status-interval", "1", "--progress", "--no-password"]
    if parent is not None:
        arguments += ["--incremental", parent.database / MANIFEST]
    programs.run(options, "pg_basebackup", *arguments, say=say, lock=lock)
    after, _ = _read(options, None)
    return contents.between(before, after), version


def _read(options: Options, target: Path | None) -> tuple[contents.Reading, str]:
    with _connected(options) as connection:
        if target is not None:
            _check_space(connection, target)
        return contents.read(connection), _version_of(connection)


def _check_space(connection: psycopg.Connection[Any], target: Path) -> None:
    [[size]] = connection.execute("SELECT pg_database_size(current_database())").fetchall()
    space = os.statvfs(target)
    free = space.f_bavail * space.f_frsize
    if free < size + _NEEDED:
        raise Refusal(
            f"The disk of {target} is too full: {free >> 20:,} MiB are free, and the database has {size >> 20:,} MiB."
            " Make room on it, delete old backups, or choose another folder."
        )


def _dump(options: Options, draft: Path, lock: int) -> tuple[dict[str, contents.Relation], str]:
    """Dump the database as of the moment at which it is counted."""
    with _connected(options) as connection:
        if connection.execute("SELECT FROM pg_extension WHERE extname = 'citus'").fetchone():
            raise Refusal(
                "The database is a Citus cluster, whose nodes pg_dump does not read; back up each node with the tools"
                " of PostgreSQL."
            )
        [[snapshot]] = connection.execute("SELECT pg_export_snapshot()").fetchall()
        reading = contents.read(connection)
        dump = draft / "database.dump"
        write_private(dump, b"")
        arguments: list[str | Path] = ["--format", "custom", "--compress", "gzip:3", "--snapshot", snapshot]
        programs.run(options, "pg_dump", *arguments, "--no-password", "--file", dump, lock=lock)
        programs.run(options, "pg_restore", "--list", dump)
        return dict(reading.relations), _version_of(connection)


@contextmanager
def _connected(options: Options) -> Iterator[psycopg.Connection[Any]]:
    try:
        with contents.connect(options) as connection:
            yield connection
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
        raise Refusal(
            f"The database has damaged pages, and no backup was made: {error.diag.message_primary}. See which, and"
            " what to do: tablero doctor --pages"
        ) from None
    except psycopg.OperationalError as error:
        raise Refusal(
            f"The database cannot be read: {str(error).strip().splitlines()[0].rstrip('.')}."
        ) from None


def _version_of(connection: psycopg.Connection[Any]) -> str:
    number = connection.info.server_version
    return f"{number // 10000}.{number % 10000}"


def _write_secret(options: Options, passphrase: bytes | None, draft: Path, say: Say) -> SecretIn:
    found = secret.read(options)
    if found is None:
        raise Refusal(
            "There is no secret to back up; give TABLERO_SECRET, or the data folder that has it, with --data."
        )
    if passphrase is not None:
        if not found.isascii() or found != found.strip():
            raise Refusal(
                "TABLERO_SECRET has characters that the file of a secret cannot have; leave --passphrase-file out, and"
                " keep the secret elsewhere."
            )
        write_private(draft / SecretIn.SEALED, sealing.seal(found, passphrase))
        return SecretIn.SEALED
    if options.secret:
        say("The secret comes from TABLERO_SECRET and is not in the backup: keep it safe elsewhere.")
        return SecretIn.ABSENT
    if not draft.is_relative_to(options.data):  # where the secret is anyway
        say("The secret is in the backup as plain text; seal it with --passphrase-file FILE.")
    write_private(draft / SecretIn.PLAIN, found + b"\n")
    return SecretIn.PLAIN


def _copy_settings(options: Options, draft: Path) -> None:
    custom = DataFolder(options.data).config / "custom.conf"
    if custom.exists():
        write_private(draft / custom.name, custom.read_bytes())


def describe(backup: Backup, seconds: float) -> str:
    """Return the last line of the command."""
    return f"{backup.path}: {size_of(backup.size)} in {seconds:.1f} seconds, verified."


def size_of(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"
