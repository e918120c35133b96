"""Backup of a server, running or not: its database, its secret and their description."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

from storage.backups import last_backup
from storage.backups.last_backup import BackupFailure, Kind
from storage.health import release
from storage.server import embedded, secret
from storage.server.backups import contents, description, files, programs, sealing
from storage.server.backups.description import PACKED, PLAIN, Backup, SecretIn
from storage.server.backups.files import Written
from storage.server.backups.sealing import Key
from storage.server.backups.stores import Draft, FolderDraft, Store, is_url, open_store
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal
from storage.sql.forms import EXTENSIONS

Say = programs.Say

_NEEDED: Final = 64 << 20  # bytes beside the database: the log of writes during the backup
_KEEP_LOG: Final = "SELECT pg_create_physical_replication_slot(%s, true, true)"  # until the connection ends


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """A request for a backup."""

    location: str  # a folder or a URL
    passphrase: bytes | None = None
    is_incremental: bool = False
    keep: int | None = None
    full_every: int = 1  # one of so many backups is full; the others are incremental if they can be
    is_recorded: bool = True  # as the last backup of the server
    seals_all: bool = True  # with the passphrase; else the secret only, beside a log that is not sealed


def back_up(options: Options, request: BackupRequest, say: Say) -> Backup:
    """Create, verify and store a backup."""
    check(options, request)
    with _recording_failures(options, request), _database(options, say):
        return back_up_running(options, request, say)


def back_up_running(options: Options, request: BackupRequest, say: Say) -> Backup:
    """Create a backup like ``back_up``, in the process that runs the database."""
    store = open_store(request.location)
    with _recording_failures(options, request):
        try:
            with store.held() as lock:
                return _back_up(options, request, store, lock, say)
        except OSError as error:
            raise Refusal(
                f"The backup cannot be written to {store.location} ({error.strerror}): make room on its disk, or choose"
                " another folder."
            ) from None


def check(options: Options, request: BackupRequest) -> None:
    """Raise Refusal for a backup configuration that cannot work."""
    secret.check(options)
    if options.database_url and (request.is_incremental or request.full_every > 1):
        raise Refusal(
            "An incremental backup needs the embedded database; with DATABASE_URL, leave --incremental and"
            " --full-every out."
        )
    if (
        not options.database_url
        and not is_url(request.location)
        and Path(request.location).resolve().is_relative_to(options.data.resolve())
    ):
        raise Refusal(
            f"{request.location} is in the data folder; choose a folder outside, on another disk at best."
        )
    open_store(request.location)


@contextmanager
def _recording_failures(options: Options, request: BackupRequest) -> Iterator[None]:
    try:
        yield
    except Refusal as failure:
        if request.is_recorded:
            with suppress(OSError):  # without a data folder, there is no console to show it
                last_backup.record_failure(options.data, BackupFailure(datetime.now(UTC), str(failure)))
        raise


@contextmanager
def _database(options: Options, say: Say) -> Iterator[None]:
    if options.database_url:
        yield
        return
    with embedded.attached(options, purpose="backup", say=say):
        yield


@dataclass(frozen=True, slots=True)
class _Work:
    """Shared values of the steps of a backup."""

    options: Options
    request: BackupRequest
    draft: Draft
    key: Key | None
    lock: int | None
    say: Say


class _Database(NamedTuple):
    """Database files of a backup; ``parent`` is the backup that an incremental one continues."""

    written: Written
    relations: dict[str, contents.Relation]
    version: str
    parent: Backup | None = None


def _back_up(options: Options, request: BackupRequest, store: Store, lock: int | None, say: Say) -> Backup:
    started_at = datetime.now(UTC)
    parent = _parent(store, request, say)
    key = Key.new(request.passphrase) if request.passphrase is not None and request.seals_all else None
    with store.draft(started_at) as draft:
        work = _Work(options, request, draft, key, lock, say)
        saved = _dump(work) if options.database_url else _copy(work, store, parent)
        kept, digests = _write_secret(work)
        digests |= saved.written.digests | _write_settings(work)
        Backup(
            store=store,
            name=draft.name,
            format=PLAIN if key is None and isinstance(draft, FolderDraft) else PACKED,
            kind=Kind.DUMP if options.database_url else Kind.INCREMENTAL if saved.parent else Kind.FILES,
            version=release.version(),
            postgresql=saved.version,
            started_at=started_at,
            finished_at=datetime.now(UTC),
            size=sum(draft.written.values()),
            wal=files.wal_end(saved.written.manifest) if saved.written.manifest else "",
            parent=saved.parent.name if saved.parent else "",
            secret=kept,
            sealing=None if key is None else key.sealing,
            relations=saved.relations,
            files=dict(sorted(digests.items())),
            key=key,
        ).publish(draft)
    made = Backup.read(store, draft.name)
    if request.is_recorded and options.data.is_dir():
        last_backup.record(
            options.data, last_backup.LastBackup(started_at, made.location, made.size, made.kind)
        )
    if request.keep is not None:
        for name in description.delete_older(store, request.keep):
            say(f"Deleted the older backup {name}.")
    return made


def _parent(store: Store, request: BackupRequest, say: Say) -> Backup | None:
    """Return the backup to continue incrementally; None for a full backup."""
    if not request.is_incremental and request.full_every == 1:
        return None
    others = [it for it in description.backups(store) if it.kind is not Kind.DUMP]
    chain = next((it for it in description.chains(others) if it[-1] is others[-1]), [])
    if request.is_incremental and not chain:
        raise Refusal(
            f"There is no backup in {store.location} to continue; make a full one first, without --incremental."
        )
    if not chain or (not request.is_incremental and len(chain) >= request.full_every):
        return None
    try:
        return chain[-1].opened(request.passphrase)
    except Refusal as refusal:
        if request.is_incremental:
            raise
        say(f"{refusal} Making a full backup.")
        return None


def _copy(work: _Work, store: Store, parent: Backup | None) -> _Database:
    with _connected(work.options) as connection:
        [[size]] = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        if parent is None:
            _check_space(store, size)
        before, version = contents.read(connection), _version_of(connection)
    try:
        written = _stream(work, parent, size)
    except programs.ProgramFailed as failed:
        if parent is None or work.request.is_incremental or not failed.needs_full:
            raise
        work.say(f"An incremental backup is not possible now ({failed}) Making a full one.")
        parent = None
        written = _stream(work, None, size)
    with _connected(work.options) as connection:
        after = contents.read(connection)
    return _Database(written, contents.between(before, after), version, parent)


def _stream(work: _Work, parent: Backup | None, size: int) -> Written:
    """Store the stream of pg_basebackup; a replication slot retains the WAL that it sends at the end."""
    # the checkpoint at once: a spread one takes minutes, as a quarter of an hour lies between two
    arguments: list[str | Path] = ["--pgdata", "-", "--format", "tar", "--checkpoint", "fast"]
    arguments += ["--wal-method", "fetch", "--manifest-checksums", "SHA256", "--progress", "--no-password"]
    with tempfile.NamedTemporaryFile(prefix="tablero-") as manifest, _connected(work.options) as connection:
        connection.rollback()
        connection.autocommit = True
        connection.execute(_KEEP_LOG, [f"tablero_backup_{os.getpid()}"])
        if parent is not None:
            manifest.write(files.manifest_of(parent))
            manifest.flush()
            arguments += ["--incremental", manifest.name]
        with programs.reading(
            work.options, "pg_basebackup", *arguments, say=work.say, lock=work.lock
        ) as stream:
            written = files.write_database(stream, work.draft, work.key, size)
    # a program that failed has ended the stream early, and is the reason
    return files.complete_database(written, work.draft, work.key)


def _check_space(store: Store, size: int) -> None:
    free = store.free()
    if free is not None and free < size + _NEEDED:
        raise Refusal(
            f"The disk of {store.location} is too full: {free >> 20:,} MiB are free, and the database has"
            f" {size >> 20:,} MiB. Make room on it, delete old backups, or choose another folder."
        )


def _dump(work: _Work) -> _Database:
    """Dump the database in the snapshot in which it is counted."""
    with _connected(work.options) as connection:
        for extension in EXTENSIONS:
            if connection.execute("SELECT FROM pg_extension WHERE extname = %s", [extension.name]).fetchone():
                raise Refusal(extension.dump_refusal)
        [[snapshot]] = connection.execute("SELECT pg_export_snapshot()").fetchall()
        reading = contents.read(connection)
        arguments = ("--format", "custom", "--compress", "gzip:3", "--snapshot", snapshot, "--no-password")
        with programs.reading(work.options, "pg_dump", *arguments, lock=work.lock) as stream:
            digests = files.write_stream(work.draft, files.DUMP, stream, work.key)
        return _Database(Written(digests, b""), dict(reading.relations), _version_of(connection))


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


def _write_secret(work: _Work) -> tuple[SecretIn, dict[str, str]]:
    """Store the secret if requested; return where it is kept, and the checksum of its file."""
    value = secret.read(work.options)
    if value is None:
        raise Refusal(
            "There is no secret to back up; give TABLERO_SECRET, or the data folder that has it, with --data."
        )
    if work.request.passphrase is not None:
        if not value.isascii() or value != value.strip():
            raise Refusal(
                "TABLERO_SECRET has characters that the file of a secret cannot have; leave --passphrase-file out, and"
                " keep the secret elsewhere."
            )
        if work.key is None:
            sealed = sealing.seal_secret(value, work.request.passphrase)
            return SecretIn.SEALED, files.write_file(work.draft, SecretIn.SEALED, sealed, None)
        return SecretIn.SEALED, files.write_file(work.draft, SecretIn.PLAIN, value + b"\n", work.key)
    if work.options.secret:
        work.say("The secret comes from TABLERO_SECRET and is not in the backup: keep it safe elsewhere.")
        return SecretIn.ABSENT, {}
    if not Path(work.request.location).is_relative_to(work.options.data):  # where the secret is anyway
        work.say(
            "The backup is not encrypted, and the secret is in it; seal both with --passphrase-file FILE."
        )
    return SecretIn.PLAIN, files.write_file(work.draft, SecretIn.PLAIN, value + b"\n", None)


def _write_settings(work: _Work) -> dict[str, str]:
    custom = DataFolder(work.options.data).config / files.SETTINGS
    if work.options.database_url or not custom.exists():
        return {}
    return files.write_file(work.draft, files.SETTINGS, custom.read_bytes(), work.key)


def describe(backup: Backup, seconds: float) -> str:
    """Return a summary sentence about the backup, the last line of the command's output."""
    return f"{backup.location}: {size_of(backup.size)} in {seconds:.1f} seconds, verified."


def size_of(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"
