"""Restoration of a server from a backup, for use or as a drill."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psycopg

from storage.backups.last_backup import Kind
from storage.server import embedded, folder_switch, installation, secret
from storage.server.backups import contents, description, files, programs, sealing
from storage.server.backups.description import PLAIN, Backup, SecretIn
from storage.server.backups.stores import FolderStore, open_store
from storage.server.data_folder import DataFolder
from storage.server.installation import MAJOR_VERSION
from storage.server.options import Options
from storage.server.refusal import Refusal

Say = programs.Say

# settings for a scratch folder, beside the database of a server
UNSAFE: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "128MB",
}
_IS_EMPTY: Final = """
SELECT count(*) = 0 FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'S', 'v')
"""


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore; ``kept`` is the folder of the replaced data."""

    counts: Mapping[str, int]
    kept: Path | None = None


def find(location: str) -> Backup:
    """Return the backup at a path or URL, or the latest in the folder or bucket."""
    return description.find(location, open_store(location))


def restore(
    options: Options, backup: Backup, say: Say, *, passphrase: bytes | None = None, replaces: bool = False
) -> Restored:
    """Restore into the data folder, or into the empty database at DATABASE_URL."""
    chain = _chain(backup, passphrase)
    if passphrase is not None and backup.sealing is None and backup.secret is not SecretIn.SEALED:
        raise Refusal(
            f"The backup {backup.location} is not sealed, so that others can have made or changed it. If you trust it,"
            " leave --passphrase-file out."
        )
    server_secret = secret_of(chain[-1], passphrase)
    if options.database_url:
        return Restored(_load(options, chain[-1], server_secret, say))
    target = DataFolder(options.data)
    has_database = target.database.exists()
    folder_switch.refuse_running(target)
    if has_database and not replaces:
        raise Refusal(
            f"There is a database in {target.path}. Choose another folder with --data DIR, or keep the present one"
            " under another name with --replace."
        )
    if not has_database and backup.kind is not Kind.DUMP:
        _check_secret(options, server_secret)
        return Restored(_build(options, chain, server_secret, say))
    # a dump is loaded bit by bit: beside, so that what is interrupted is no database
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    beside = replace(options, data=target.path.with_name(f"{target.path.name}.{stamp}.new"))
    try:
        counts = _build(beside, chain, server_secret, say)
    except Refusal:
        shutil.rmtree(beside.data, ignore_errors=True)
        raise
    if not has_database:
        beside.data.rename(target.path)
        return Restored(counts)
    kept = target.path.with_name(f"{target.path.name}.{stamp}")
    folder_switch.put_in_place(target.path, beside.data, kept)
    return Restored(counts, kept)


def drill(
    options: Options, backup: Backup, say: Say, *, passphrase: bytes | None = None, within: Path | None = None
) -> list[str]:
    """Restore into a temporary folder, by default in TMPDIR; return a sentence for each difference."""
    chain = _chain(backup, passphrase)
    with _scratch(within) as folder, _explaining():
        scratch = replace(options, data=folder / "data", database_url="", pooler_url="", declared={})
        dump = _fill(scratch, chain, None, say)
        with embedded.running(scratch, purpose="backup", say=say, settings=UNSAFE):
            if dump is not None:
                _run_restore(scratch, dump)
            with contents.connect(scratch) as connection:
                return contents.differences(connection, chain[-1].relations)


def copy(options: Options, backup: Backup, found: bytes | None, say: Say) -> None:
    """Create a data folder from an opened backup and a secret, without opening the database."""
    with _explaining():
        _fill(options, _chain(backup, None), found, say)


def unseal(backup: Backup, folder: Path, say: Say, *, passphrase: bytes | None = None) -> list[Backup]:
    """Copy the chain of a backup into a folder of plain files, which PostgreSQL can start."""
    store = FolderStore(folder)
    with store.held(), _explaining():
        return [_copy_plain(it, store, say, passphrase) for it in description.chain_of(backup, passphrase)]


def _copy_plain(backup: Backup, store: FolderStore, say: Say, passphrase: bytes | None) -> Backup:
    if store.folder_of(backup.name).exists():
        raise Refusal(f"There is {store.locate(backup.name)} already; choose another folder.")
    say(f"Reading and verifying {backup.location} ...")
    with store.draft_of(backup.name) as draft:
        files.take(backup, draft.path if backup.kind is Kind.DUMP else draft.path / files.DATABASE)
        digests = {name: it for name, it in backup.files.items() if name.startswith(f"{files.DATABASE}")}
        server_secret = secret_of(backup, passphrase)
        if server_secret is not None:
            digests |= files.write_file(draft, SecretIn.PLAIN, server_secret + b"\n", None)
        if files.SETTINGS in backup.files:
            digests |= files.write_file(
                draft, files.SETTINGS, files.read_verified(backup, files.SETTINGS), None
            )
        for path in draft.path.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        kept = SecretIn.ABSENT if server_secret is None else SecretIn.PLAIN
        plain = replace(backup, store=store, format=PLAIN, secret=kept, sealing=None, key=None, files=digests)
        plain.publish(draft)
    return plain


@contextmanager
def _explaining() -> Iterator[None]:
    """Convert errors caused by the machine to Refusal."""
    try:
        yield
    except shutil.Error as error:  # several files failed
        raise Refusal(f"The backup cannot be copied: {error.args[0][0][2]}.") from None
    except OSError as error:
        raise Refusal(f"The backup cannot be restored: {error}.") from None
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise Refusal(f"The restored database cannot be read: {reason}.") from None


@contextmanager
def _scratch(within: Path | None = None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tablero-restore-", dir=within))
    folder.chmod(0o711 if os.geteuid() == 0 else 0o700)  # root's PostgreSQL, another user, passes through
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _chain(backup: Backup, passphrase: bytes | None) -> list[Backup]:
    """Return the opened chain of a backup; raises Refusal for another PostgreSQL version."""
    chain = description.chain_of(backup, passphrase)
    for it in chain:
        major = it.postgresql.partition(".")[0]
        if it.kind is not Kind.DUMP and major != str(MAJOR_VERSION):
            raise Refusal(
                f"The backup {it.location} is of PostgreSQL {major}, and this Tablero brings {MAJOR_VERSION}; restore"
                f" it with Tablero {it.version}, which made it."
            )
    return chain


def secret_of(backup: Backup, passphrase: bytes | None) -> bytes | None:
    """Return the secret in a backup; raises Refusal without the right passphrase."""
    if backup.secret is SecretIn.ABSENT:
        return None
    if backup.secret is SecretIn.PLAIN or backup.sealing is not None:
        return files.read_verified(backup, SecretIn.PLAIN).strip()
    if passphrase is None:
        raise Refusal("The secret of this backup is sealed; give the passphrase with --passphrase-file FILE.")
    return sealing.unseal_secret(files.read_verified(backup, SecretIn.SEALED), passphrase)


def restore_secret(options: Options, backup: Backup, passphrase: bytes | None = None) -> None:
    """Restore the secret of a data folder that has lost it."""
    server_secret = secret_of(backup.opened(passphrase), passphrase)
    if server_secret is None:
        raise Refusal("The secret is not in this backup: the server had it from TABLERO_SECRET.")
    DataFolder(options.data).refuse_missing()
    _check_secret(options, server_secret)
    if not secret.path_of(options).exists():
        _write(secret.path_of(options), server_secret + b"\n", 0o600)


def _check_secret(options: Options, server_secret: bytes | None) -> None:
    path = secret.path_of(options)
    if server_secret is not None and path.exists() and path.read_bytes().strip() != server_secret:
        raise Refusal(
            f"{path} is another secret than that of the backup; move it away or choose another folder."
        )


def _build(options: Options, chain: list[Backup], server_secret: bytes | None, say: Say) -> dict[str, int]:
    """Fill a data folder and open its database once; remove the database on failure."""
    is_new = not options.data.exists()
    try:
        with _explaining():
            dump = _fill(options, chain, server_secret, say)
            say("Opening the restored database ...")
            with embedded.running(options, purpose="restore", say=say):
                if dump is not None:
                    _run_restore(options, dump)
                    shutil.rmtree(_draft(options), ignore_errors=True)
                with contents.connect(options) as connection:
                    return contents.count(connection)
    except Refusal:
        for path in (options.data / "database", _draft(options), *([options.data] if is_new else [])):
            shutil.rmtree(path, ignore_errors=True)
        raise


def _draft(options: Options) -> Path:
    return options.data / "restore.new"


def _fill(options: Options, chain: list[Backup], server_secret: bytes | None, say: Say) -> Path | None:
    """Extract the verified files of a backup into a data folder, the database last; return a dump to load."""
    folder = DataFolder(options.data)
    folder.create()
    with folder.held("restore"):
        if server_secret is not None and not secret.path_of(options).exists():
            _write(secret.path_of(options), server_secret + b"\n", 0o600)
        draft = _draft(options)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        taken = [
            _take(it, draft / str(number), say, is_whole=len(chain) == 1) for number, it in enumerate(chain)
        ]
        if chain[-1].kind is Kind.DUMP:
            return taken[0] / files.DUMP
        if len(chain) > 1:
            say("Combining the backups ...")
            programs.run(options, "pg_combinebackup", *taken, "--output", draft / "whole")
            taken = [draft / "whole"]
        found_programs = installation.find(options, folder)
        for path in (taken[0], *taken[0].rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
            found_programs.own(path)
        if files.SETTINGS in chain[-1].files:
            folder.config.mkdir(exist_ok=True)
            # as those beside it
            _write(folder.config / files.SETTINGS, files.read_verified(chain[-1], files.SETTINGS), 0o644)
        os.sync()
        taken[0].rename(folder.database)
        shutil.rmtree(draft)
        return None


def _take(backup: Backup, target: Path, say: Say, *, is_whole: bool) -> Path:
    """Verify a backup and return the folder of its database or dump: the target, or the backup itself."""
    say(f"Reading and verifying {backup.location} ...")
    if backup.folder is None or (is_whole and backup.kind is not Kind.DUMP):
        files.take(backup, target)
        return target
    files.verify(backup)
    return backup.folder if backup.kind is Kind.DUMP else backup.folder / files.DATABASE


def _write(path: Path, content: bytes, mode: int) -> None:
    path.touch(mode=mode)
    path.write_bytes(content)
    path.chmod(mode)


def _run_restore(options: Options, dump: Path) -> None:
    # not in one transaction: PostgreSQL has no room for the locks of thousands of tables
    name = contents.database_name(options)
    programs.run(
        options,
        "pg_restore",
        *("--exit-on-error", "--no-owner", "--no-privileges", "--transaction-size", "500", "--dbname", name),
        dump,
    )


def _load(options: Options, backup: Backup, server_secret: bytes | None, say: Say) -> dict[str, int]:
    if backup.kind is not Kind.DUMP:
        raise Refusal(
            "The backup is of an embedded database; restore it without DATABASE_URL. An external database takes"
            " backups that were made with DATABASE_URL."
        )
    with _explaining(), _scratch() as scratch:
        with contents.connect(options) as connection:
            [[is_empty]] = connection.execute(_IS_EMPTY).fetchall()
        if not is_empty:
            raise Refusal("The database in DATABASE_URL is not empty; create a new one and name that.")
        _check_secret(options, server_secret)
        dump = _take(backup, scratch / "dump", say, is_whole=True) / files.DUMP
        say("Loading the dump ...")
        _run_restore(options, dump)
        if server_secret is not None and not options.secret:
            DataFolder(options.data).create()
            if not secret.path_of(options).exists():
                _write(secret.path_of(options), server_secret + b"\n", 0o600)
        with contents.connect(options) as connection:
            return contents.count(connection)
