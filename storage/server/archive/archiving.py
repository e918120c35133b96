"""WAL archiving of the embedded database: PostgreSQL settings, archiver configuration and archive."""

import json
import shlex
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from storage.server import database
from storage.server.archive import archiver, catalog
from storage.server.archive.catalog import Catalog, NotAnArchive
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

_TIMEOUT: Final = (
    "60s"  # until a segment that is not full is archived: what is lost with the disk of the database
)
_CONFIG: Final = "config.json"
_WAIT: Final = 300  # tenths of a second that archive_command waits, before PostgreSQL calls it again


@dataclass(frozen=True, slots=True)
class Config:
    """Archive configuration of a data folder, stored there so that commands that start its database archive, too."""

    archive: Path
    backlog: int  # bytes
    # make the archive, or refuse one of another database; commands leave that to the server
    claims: bool = False

    @classmethod
    def read(cls, folder: DataFolder) -> "Config | None":
        try:
            stored = json.loads((folder.archiving / _CONFIG).read_text())
            return cls(Path(stored["archive"]), stored["backlog"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError) as error:
            raise Refusal(f"{folder.archiving / _CONFIG} cannot be read: {error}.") from None

    def write(self, folder: DataFolder) -> None:
        """Create the archiver's folder, readable by PostgreSQL's user."""
        for path in (folder.archiving, folder.archiving / "done"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        draft = folder.archiving / f"{_CONFIG}.new"
        draft.write_text(json.dumps({"archive": str(self.archive), "backlog": self.backlog}))
        draft.replace(folder.archiving / _CONFIG)


def check(options: Options) -> None:
    """Raise Refusal for an archive configuration that cannot work."""
    if options.archive is None:
        return
    if options.database_url:
        raise Refusal(
            "--archive is for the embedded database; archive an external one with the tools of its PostgreSQL."
        )
    if options.archive.folder.resolve().is_relative_to(options.data.resolve()):
        raise Refusal(
            f"{options.archive.folder} is in the data folder; choose a folder outside, on another disk at best."
        )


def configure(options: Options, folder: DataFolder) -> Config | None:
    """Store the archive options with which a server was started; without an archive, archiving stops."""
    if options.archive is None:
        (folder.archiving / _CONFIG).unlink(missing_ok=True)
        return None
    config = Config(options.archive.folder, options.archive.backlog, claims=True)
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
        _claim(folder, config.archive, system)
    return {
        "wal": str(folder.database / "pg_wal"),
        "archive": str(config.archive),
        "system": system,
        "folder": str(folder.archiving),
        "backlog": config.backlog,
    }


def system_of(folder: DataFolder) -> str:
    """Return the system identifier of a database, shared with its copies."""
    with (folder.database / "global" / "pg_control").open("rb") as file:
        return str(struct.unpack("=Q", file.read(8))[0])


def _claim(folder: DataFolder, archive: Path, system: str) -> None:
    try:
        archived_system = catalog.read_system(archive)
    except NotAnArchive as error:
        if (folder.archiving / "state.json").exists() and _was_used(folder):
            return  # the archiver waits for it: its disk may be mounted later
        _create(archive, system, str(error))
        return
    if archived_system != system:
        raise Refusal(
            f"{archive} is the archive of another database, or of this one before an upgrade of PostgreSQL; choose"
            " another folder with --archive."
        )


def _was_used(folder: DataFolder) -> bool:
    return bool(archiver.read_state(folder.archiving / "state.json")["archived"])


def _create(archive: Path, system: str, problem: str) -> None:
    try:
        archive.mkdir(mode=0o700, parents=True, exist_ok=True)
        if {it.name for it in archive.iterdir()} - {"base", "timelines", "wal", "lost+found"}:
            raise Refusal(f"{problem} It has other files; choose an empty folder with --archive.")
        for name in ("base", "timelines", "wal"):
            (archive / name).mkdir(mode=0o700, exist_ok=True)
        draft = archive / "archive.new"
        draft.write_text(json.dumps({"format": catalog.FORMAT, "system": system}))
        archiver.synchronize(draft)
        draft.rename(archive / catalog.DESCRIPTION)
        archiver.synchronize(archive)
    except OSError as error:
        raise Refusal(
            f"It is not possible to write to {archive} ({error.strerror}); choose another folder with --archive."
        ) from None


def begin(options: Options) -> None:
    """Record the timeline that the running server uses from now on."""
    config = Config.read(DataFolder(options.data))
    if config is None:
        return
    with connect(options) as connection:
        timeline = int(_fetch(connection, "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"), 16)
    with suppress(OSError, NotAnArchive):  # the archiver reports these; the keeper calls this again
        uses = Catalog.read(config.archive).uses
        if not uses or uses[-1].timeline != timeline:
            path = config.archive / "timelines" / catalog.name_of_use(timeline, datetime.now(UTC))
            path.touch()
            archiver.synchronize(path.parent)


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
