"""A database of every release is upgraded by this version, and loses nothing: see tests/tools/releases."""

import fcntl
import gzip
import json
import signal
import subprocess
from contextlib import contextmanager, suppress

import psycopg
import pytest

from storage.backups import last_backup
from storage.server import database, embedded, installation, options
from storage.server.backups.description import Backup
from storage.server.backups.files import verify
from storage.server.backups.stores import FolderStore
from storage.server.data_folder import DataFolder
from storage.server.migration import BACKUPS
from storage.server.refusal import Refusal
from tests.commands import command
from tests.live_server import START_TIMEOUT, LiveServer, clean_environment, start_server
from tests.programs import missing
from tests.tools.releases import contents
from tests.tools.releases.doors import RELEASES, Doors
from tests.waiting import wait_for

pytestmark = pytest.mark.long
OLDEST = 16  # the PostgreSQL of the first release
# rows that would expire are kept, so that the test need not be made again each year
KEEP = (
    "UPDATE storage_table SET kept_until = now() + interval '1 day' WHERE kept_until IS NOT NULL",
    "UPDATE {saved_urls} SET used_at = now()",
)
KEEP_HISTORY = "UPDATE storage_account SET history_days = 32767"


def restored(release, data, major=installation.MAJOR_VERSION):
    """Make a data folder of a release again, by a version of PostgreSQL, and return what was put into it."""
    made = json.loads(gzip.decompress((RELEASES / release / "made.json.gz").read_bytes()))
    folder = DataFolder(data)
    folder.create()
    (data / "secret").write_text(made["secret"])
    result = options.read({"TABLERO_DATA": str(data)})
    with folder.held("test") as lock:
        programs = installation.find_complete(result, folder, major, data / "postgresql-test")
        with embedded.started(result, programs, lock, print, settings={"fsync": "off"}):
            load(result, release)
    return made


def load(given, release):
    dump = gzip.decompress((RELEASES / release / "database.sql.gz").read_bytes())
    dump = dump.replace(b"SET transaction_timeout = 0;", b"")  # PostgreSQL 16 does not know this setting
    parameters = database.parameters(given)
    subprocess.run(
        [
            installation.packaged_programs() / "psql",
            *("--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1", "--output", "/dev/null"),
            *("--host", parameters["host"], "--username", parameters["user"], parameters["dbname"]),
        ],
        input=dump,
        check=True,
    )
    with psycopg.connect(database.conninfo(given)) as connection:
        keep(connection)


def keep(connection):
    names = {name for (name,) in connection.execute("SELECT relname FROM pg_class").fetchall()}
    saved_urls = "console_savedurl" if "console_savedurl" in names else "console_storedstate"
    for statement in KEEP:
        connection.execute(statement.format(saved_urls=saved_urls))
    if "storage_historysegment" in names:
        connection.execute(KEEP_HISTORY)


def has_said(live, words):
    return any(words in line for line in live.output)


@contextmanager
def upgrading(data, *arguments):
    """Upgrade a data folder as the start of a server does, by the command."""
    with subprocess.Popen(
        command("upgrade", "--data", data, *arguments),
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield LiveServer(process, data)


def interrupt(data):
    """Kill the conversion of the folder; refuse to upgrade without the backup; kill the backup, and the migration."""
    with upgrading(data) as upgrade:
        wait_for(lambda: (data / "upgrade" / "database" / "postmaster.pid").exists())  # pg_upgrade's
        upgrade.kill()
    assert (data / "database" / "PG_VERSION").read_text() == f"{OLDEST}\n"
    with upgrading(data, "--backup-to", "/dev/null") as upgrade:
        assert upgrade.process.wait(START_TIMEOUT) == 1
        upgrade.reader.join(START_TIMEOUT)
    assert "The database was not upgraded, because the backup before it failed." in "\n".join(upgrade.output)
    with upgrading(data) as upgrade:
        wait_for(lambda: list((data / BACKUPS).glob("*T*")))
        upgrade.kill()
    with (data / BACKUPS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the backup waits, as for one that was killed
        with upgrading(data) as upgrade:
            wait_for(lambda: has_said(upgrade, "Backing up"))
            result = options.read({"TABLERO_DATA": str(data)})
            with suppress(psycopg.OperationalError), psycopg.connect(database.conninfo(result)) as connection:
                connection.execute("LOCK TABLE console_storedstate IN ACCESS SHARE MODE")
                fcntl.flock(lock, fcntl.LOCK_UN)
                wait_for(lambda: connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone())
                upgrade.kill()
    assert upgrade.process.returncode == -signal.SIGKILL
    assert has_said(upgrade, "Bringing the database up to date")


def restored_by(major, release, data):
    try:
        return restored(release, data, major)
    except Refusal as refusal:
        missing(str(refusal))


@pytest.mark.parametrize("release", sorted(path.name for path in RELEASES.glob("[0-9]*")))
def test_a_database_of_a_release_keeps_everything(release, data):
    """The first one in a folder of an older PostgreSQL, which the command converts."""
    is_oldest = release == "0.4.0"
    made = restored_by(OLDEST if is_oldest else installation.MAJOR_VERSION, release, data)
    if is_oldest:
        interrupt(data)
    with start_server(data, env={"TABLERO_ACTIVITY_DAYS": "3650"}) as live:
        doors = Doors(live.url, made["token"], made["passwords"])
        result = json.loads(json.dumps(contents.read(doors, made)))
        assert "\n".join(contents.differences(made["found"], result)) == ""
        assert contents.use(doors, made) == []
        if has_said(live, "Bringing the database up to date"):
            [backup] = (data / BACKUPS).glob("[!.]*")
            verify(Backup.read(FolderStore(backup.parent), backup.name))
            assert not list((data / BACKUPS).glob(".*.part"))
            assert last_backup.read(data).last is None
    if is_oldest:
        assert (data / "database" / "PG_VERSION").read_text() == f"{installation.MAJOR_VERSION}\n"
        [kept] = data.glob(f"database.{OLDEST}.*")
        assert (kept / "PG_VERSION").read_text() == f"{OLDEST}\n"
        assert not (data / "upgrade").exists()
