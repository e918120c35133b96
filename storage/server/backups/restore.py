"""Make a server of a backup again: to use it, or to see that it could be used."""

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

from storage.operations.health.last_backup import Kind
from storage.server import embedded, folder_switch, installation, secret
from storage.server.backups import contents, programs, sealing
from storage.server.backups.backup_folder import DESCRIPTION, Backup, BackupFolder, SecretIn, verify
from storage.server.data_folder import DataFolder
from storage.server.installation import MAJOR_VERSION
from storage.server.options import Options
from storage.server.refusal import Refusal

Say = programs.Say

_UNSAFE: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}  # of a scratch folder
_IS_EMPTY: Final = """
SELECT count(*) = 0 FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'S', 'v')
"""


@dataclass(frozen=True, slots=True)
class Restored:
    """``kept`` is where the data are that the restored ones replace."""

    counts: Mapping[str, int]
    kept: Path | None = None


def find(path: Path) -> Backup:
    """Return a backup: the one in a folder, or the last one of a folder of backups."""
    return Backup.read(path) if (path / DESCRIPTION).exists() else BackupFolder(path).last()


def restore(
    options: Options, backup: Backup, say: Say, *, passphrase: bytes | None = None, replaces: bool = False
) -> Restored:
    """Restore into the data folder, or into the empty database of DATABASE_URL."""
    chain = _verified(backup, say)
    found = secret_of(backup, passphrase)
    if options.database_url:
        return Restored(_load(options, backup, found, say))
    target = DataFolder(options.data)
    has_database = target.database.exists()
    folder_switch.refuse_running(target)
    if has_database and not replaces:
        raise Refusal(
            f"There is a database in {target.path}. Choose another folder with --data DIR, or keep the present one"
            " under another name with --replace."
        )
    if not has_database and backup.kind is not Kind.DUMP:
        _check_secret(options, found)
        return Restored(_build(options, chain, found, say))
    # a dump is loaded bit by bit: beside, so that what is interrupted is no database
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    beside = replace(options, data=target.path.with_name(f"{target.path.name}.{stamp}.new"))
    try:
        counts = _build(beside, chain, found, say)
    except Refusal:
        shutil.rmtree(beside.data, ignore_errors=True)
        raise
    if not has_database:
        beside.data.rename(target.path)
        return Restored(counts)
    kept = target.path.with_name(f"{target.path.name}.{stamp}")
    folder_switch.put_in_place(target.path, beside.data, kept)
    return Restored(counts, kept)


def drill(options: Options, backup: Backup, say: Say) -> list[str]:
    """Restore into a scratch folder; return a sentence for everything that is not as it was."""
    chain = _verified(backup, say)
    with _scratch() as folder, _explaining():
        scratch = replace(options, data=folder, database_url="", pooler_url="", replicas=())
        _fill(scratch, chain, None, say)
        with embedded.running(scratch, purpose="backup", say=say, settings=_UNSAFE):
            if backup.kind is Kind.DUMP:
                _run_restore(scratch, backup)
            with contents.connect(scratch) as connection:
                return contents.differences(connection, backup.relations)


def copy(options: Options, backup: Backup, found: bytes | None, say: Say) -> None:
    """Make a data folder of a backup and the secret, without opening the database."""
    chain = _verified(backup, say)
    with _explaining():
        _fill(options, chain, found, say)


@contextmanager
def _explaining() -> Iterator[None]:
    """Turn what fails for reasons of the machine into a Refusal."""
    try:
        yield
    except shutil.Error as error:  # of several files
        raise Refusal(f"The backup cannot be copied: {error.args[0][0][2]}.") from None
    except OSError as error:
        raise Refusal(f"The backup cannot be restored: {error}.") from None
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise Refusal(f"The restored database cannot be read: {reason}.") from None


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tablero-restore-"))
    folder.chmod(0o711 if os.geteuid() == 0 else 0o700)  # root's PostgreSQL, another user, passes through
    try:
        yield folder / "data"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _verified(backup: Backup, say: Say) -> list[Backup]:
    """Return the backup after those that it continues; raises Refusal if one is damaged."""
    chain = [backup]
    while parent := chain[0].parent:
        chain.insert(0, Backup.read(backup.path.parent / parent))
    for it in chain:
        major = it.postgresql.partition(".")[0]
        if it.kind is not Kind.DUMP and major != str(MAJOR_VERSION):
            raise Refusal(
                f"The backup {it.path} is of PostgreSQL {major}, and this Tablero brings {MAJOR_VERSION}; restore it"
                f" with Tablero {it.version}, which made it."
            )
        say(f"Verifying {it.path} ...")
        verify(it)
    return chain


def secret_of(backup: Backup, passphrase: bytes | None) -> bytes | None:
    """Return the secret in a backup; raises Refusal without the right passphrase."""
    if backup.secret is SecretIn.ABSENT:
        return None
    content = (backup.path / backup.secret).read_bytes()
    if backup.secret is SecretIn.PLAIN:
        return content.strip()
    if passphrase is None:
        raise Refusal("The secret of this backup is sealed; give the passphrase with --passphrase-file FILE.")
    return sealing.unseal(content, passphrase)


def restore_secret(options: Options, backup: Backup, passphrase: bytes | None = None) -> None:
    """Bring the secret back into a data folder that has lost it."""
    found = secret_of(backup, passphrase)
    if found is None:
        raise Refusal("The secret is not in this backup: the server had it from TABLERO_SECRET.")
    DataFolder(options.data).refuse_missing()
    _check_secret(options, found)
    if not secret.path_of(options).exists():
        _write(secret.path_of(options), found + b"\n", 0o600)


def _check_secret(options: Options, found: bytes | None) -> None:
    path = secret.path_of(options)
    if found is not None and path.exists() and path.read_bytes().strip() != found:
        raise Refusal(
            f"{path} is another secret than that of the backup; move it away or choose another folder."
        )


def _build(options: Options, chain: list[Backup], found: bytes | None, say: Say) -> dict[str, int]:
    """Make a data folder and open it once; leave no database if that does not succeed."""
    try:
        with _explaining():
            _fill(options, chain, found, say)
            say("Opening the restored database ...")
            with embedded.running(options, purpose="restore", say=say):
                if chain[-1].kind is Kind.DUMP:
                    _run_restore(options, chain[-1])
                with contents.connect(options) as connection:
                    return contents.count(connection)
    except Refusal:
        for name in ("database", "database.new"):
            shutil.rmtree(options.data / name, ignore_errors=True)
        raise


def _fill(options: Options, chain: list[Backup], found: bytes | None, say: Say) -> None:
    """Put the files of a backup into a data folder; the database appears at the end."""
    folder = DataFolder(options.data)
    folder.create()
    with folder.held("restore"):
        if found is not None and not secret.path_of(options).exists():
            _write(secret.path_of(options), found + b"\n", 0o600)
        if chain[-1].kind is Kind.DUMP:
            return
        say(f"Copying the database into {folder.path} ...")
        draft = folder.path / "database.new"
        shutil.rmtree(draft, ignore_errors=True)
        if len(chain) > 1:
            programs.run(options, "pg_combinebackup", *(it.database for it in chain), "--output", draft)
        else:
            shutil.copytree(chain[-1].database, draft, symlinks=True)
        found_programs = installation.find(options, folder)
        for path in (draft, *draft.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
            found_programs.own(path)
        settings = chain[-1].path / "custom.conf"
        if settings.exists():
            folder.config.mkdir(exist_ok=True)
            _write(folder.config / settings.name, settings.read_bytes(), 0o644)  # as those beside it
        os.sync()
        draft.rename(folder.database)


def _write(path: Path, content: bytes, mode: int) -> None:
    path.touch(mode=mode)
    path.write_bytes(content)
    path.chmod(mode)


def _run_restore(options: Options, backup: Backup) -> None:
    # not in one transaction: PostgreSQL has no room for the locks of thousands of tables
    name = contents.database_name(options)
    programs.run(
        options,
        "pg_restore",
        *("--exit-on-error", "--no-owner", "--no-privileges", "--transaction-size", "500", "--dbname", name),
        backup.dump,
    )


def _load(options: Options, backup: Backup, found: bytes | None, say: Say) -> dict[str, int]:
    if backup.kind is not Kind.DUMP:
        raise Refusal(
            "The backup is of an embedded database; restore it without DATABASE_URL. An external database takes"
            " backups that were made with DATABASE_URL."
        )
    with _explaining():
        with contents.connect(options) as connection:
            [[is_empty]] = connection.execute(_IS_EMPTY).fetchall()
        if not is_empty:
            raise Refusal("The database in DATABASE_URL is not empty; create a new one and name that.")
        _check_secret(options, found)
        say("Loading the dump ...")
        _run_restore(options, backup)
        if found is not None and not options.secret:
            DataFolder(options.data).create()
            if not secret.path_of(options).exists():
                _write(secret.path_of(options), found + b"\n", 0o600)
        with contents.connect(options) as connection:
            return contents.count(connection)
