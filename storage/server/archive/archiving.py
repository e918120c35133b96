"""WAL archiving of the embedded database: PostgreSQL settings, archiver configuration and archive."""

import json
import os
import shlex
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from storage.server import database
from storage.server.archive import archiver, catalog
from storage.server.archive.archive_store import BASES, LOG, TIMELINES, Archive, NotAnArchive
from storage.server.backups.stores import is_url
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

_TIMEOUT: Final = (
    "60s"  # until a segment that is not full is archived: what is lost with the disk of the database
)
_CONFIG: Final = "config.json"
# variables with credentials, and with the way to the network
_OF_BUCKETS: Final = (
    "AWS_",
    "AZURE_",
    "IDENTITY_",
    "MSI_",
    "HTTP_",
    "HTTPS_",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_",
)
_ROOT: Final = Path(__file__).parents[3]
_WAIT: Final = 300  # tenths of a second that archive_command waits, before PostgreSQL calls it again


@dataclass(frozen=True, slots=True)
class Config:
    """Archive configuration of a data folder, stored there so that commands that start its database archive, too."""

    archive: str  # a folder or a URL
    backlog: int  # bytes
    passphrase_file: Path | None = None
    is_sealed: bool = False  # remembered from the last start of a server
    # make the archive, or refuse one of another database; commands leave that to the server
    claims: bool = False

    @classmethod
    def read(cls, folder: DataFolder) -> "Config | None":
        try:
            stored = json.loads((folder.archiving / _CONFIG).read_text())
            file = stored.get("passphrase_file")
            passphrase_file = Path(file) if file else None
            return cls(stored["archive"], stored["backlog"], passphrase_file, stored.get("is_sealed", False))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError) as error:
            raise Refusal(f"{folder.archiving / _CONFIG} cannot be read: {error}.") from None

    def open(self, passphrase_file: Path | None = None) -> Archive:
        """Return the archive; ``passphrase_file`` replaces the one of the server."""
        return Archive(self.archive, passphrase_file or self.passphrase_file)

    def write(self, folder: DataFolder) -> None:
        """Create the archiver's folder, readable by PostgreSQL's user."""
        for path in (folder.archiving, folder.archiving / "done"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        draft = folder.archiving / f"{_CONFIG}.new"
        file = None if self.passphrase_file is None else str(self.passphrase_file)
        content = {"archive": self.archive, "backlog": self.backlog, "passphrase_file": file}
        draft.write_text(json.dumps({**content, "is_sealed": self.is_sealed}))
        draft.replace(folder.archiving / _CONFIG)


def check(options: Options) -> None:
    """Raise Refusal for an archive configuration that cannot work."""
    if options.archive is None:
        return
    if options.database_url:
        raise Refusal(
            "--archive is for the embedded database; archive an external one with the tools of its PostgreSQL."
        )
    location = str(options.archive.folder)
    if not is_url(location) and Path(location).resolve().is_relative_to(options.data.resolve()):
        raise Refusal(f"{location} is in the data folder; choose a folder outside, on another disk at best.")
    Archive(location, options.archive.passphrase_file).passphrase()


def configure(options: Options, folder: DataFolder) -> Config | None:
    """Store the archive options with which a server was started; without an archive, archiving stops."""
    if options.archive is None:
        (folder.archiving / _CONFIG).unlink(missing_ok=True)
        return None
    location, before = str(options.archive.folder), Config.read(folder)
    config = Config(
        location,
        options.archive.backlog,
        options.archive.passphrase_file,
        is_sealed=before is not None and before.archive == location and before.is_sealed,
        claims=True,
    )
    config.write(folder)
    return config


def settings(folder: DataFolder, config: Config | None) -> Mapping[str, str]:
    """Return PostgreSQL's archiving settings."""
    if config is None:
        return {}
    place = shlex.quote(str(folder.archiving)).replace("%", "%%")
    command = (
        f"i=0; until [ -e {place}/done/%f ];"
        f" do [ ! -e {place}/failing ] && [ $i -lt {_WAIT} ] || exit 1; i=$((i+1)); sleep 0.1; done"
    )
    return {"archive_mode": "on", "archive_command": command, "archive_timeout": _TIMEOUT}


def plan(folder: DataFolder, config: Config | None) -> dict[str, Any] | None:
    """Return the archiver's configuration, creating the archive for a server; the database must exist."""
    if config is None:
        return None
    system = system_of(folder)
    if config.claims:
        config = _claim(folder, config, system)
    return {
        "wal": str(folder.database / "pg_wal"),
        "archive": config.archive,
        "passphrase_file": None if config.passphrase_file is None else str(config.passphrase_file),
        "is_sealed": config.is_sealed,
        "system": system,
        "folder": str(folder.archiving),
        "backlog": config.backlog,
    }


def environment(config: Config | None) -> Mapping[str, str]:
    """Return the variables that the archiver needs: where its modules are, and what opens a bucket."""
    if config is None:
        return {}
    names = [it for it in os.environ if is_url(config.archive) and it.upper().startswith(_OF_BUCKETS)]
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**{name: os.environ[name] for name in names}, "PYTHONPATH": path}


def system_of(folder: DataFolder) -> str:
    """Return the system identifier of a database, shared with its copies."""
    with (folder.database / "global" / "pg_control").open("rb") as file:
        return str(struct.unpack("=Q", file.read(8))[0])


def _claim(folder: DataFolder, config: Config, system: str) -> Config:
    """Make the archive if it is new; raises Refusal for one of another database, or with another passphrase."""
    archive = Archive(config.archive, config.passphrase_file)
    try:
        archive.identity()
    except NotAnArchive as error:
        if (folder.archiving / "state.json").exists() and _was_used(folder):
            return config  # the archiver waits for it: its disk may be mounted later
        _create(archive, system, str(error))
    archived_system = archive.open().system
    if archived_system != system:
        raise Refusal(
            f"{config.archive} is the archive of another database, or of this one before an upgrade of PostgreSQL;"
            " choose another folder with --archive."
        )
    if config.is_sealed and not archive.is_sealed:
        raise Refusal(f"{config.archive} was sealed and is no more; choose another folder with --archive.")
    config = replace(config, is_sealed=archive.is_sealed)
    config.write(folder)
    return config


def _was_used(folder: DataFolder) -> bool:
    return bool(archiver.read_state(folder.archiving / "state.json")["archived"])


def _create(archive: Archive, system: str, problem: str) -> None:
    try:
        if not is_url(archive.location):
            Path(archive.location).mkdir(mode=0o700, parents=True, exist_ok=True)
        if archive.store.entries() - {BASES, TIMELINES, LOG, "lost+found", ".lock"}:
            raise Refusal(f"{problem} It has other files; choose an empty folder with --archive.")
        archive.create(system)
    except OSError as error:
        raise Refusal(
            f"It is not possible to write to {archive.location} ({error.strerror}); choose another folder with"
            " --archive."
        ) from None


def begin(options: Options, archive: Archive) -> None:
    """Record the timeline that the running server uses from now on."""
    with connect(options) as connection:
        timeline = int(_fetch(connection, "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"), 16)
    with suppress(OSError, Refusal):  # the archiver reports these; the keeper calls this again
        archive.open()
        uses = catalog.read_uses(archive)
        if not uses or uses[-1].timeline != timeline:
            archive.write(TIMELINES, catalog.name_of_use(timeline, datetime.now(UTC)), b"")


def connect(options: Options) -> psycopg.Connection[Any]:
    return psycopg.connect(**database.parameters(options), autocommit=True)  # type: ignore[arg-type]


def flush(options: Options) -> str:
    """Switch to a new WAL segment so that the current one is archived; return the name of the latter."""
    with connect(options) as connection:
        connection.execute("SELECT pg_current_xact_id()")
        return _fetch(connection, "SELECT pg_walfile_name(pg_switch_wal())")


def _fetch(connection: psycopg.Connection[Any], query: str) -> str:
    [[value]] = connection.execute(query.encode()).fetchall()
    return str(value)
