"""The PostgreSQL of a test process, whose database with all tables is made once and kept in the user's cache.

Migrations take longer than most files of tests. Their result is kept under a hash of all files that decide about it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from storage.server import cluster, embedded, installation, options
from storage.server.data_folder import DataFolder

ROOT: Final = Path(__file__).parents[1]
DATABASE: Final = os.environ.get(
    "TEST_DATABASE", "test_tablero"
)  # where TEST_SOCKETS names a server, one of its own
PROGRAMS: Final = "TEST_POSTGRESQL"  # the folder with the programs of another version
FAST: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "128MB",
}
# migrations, what they import, the models that Django writes permissions for, and the versions of all packages
SOURCES: Final = (
    "storage/migrations/*.py",
    "console/migrations/*.py",
    "storage/sql/**/*.py",
    "storage/domain/values/*.py",
    "storage/cluster/ddl.py",
    "storage/models.py",
    "console/models.py",
    "storage/server/cluster.py",
    ".lock/test.txt",
    "tests/prepared.py",
)
KEPT: Final = 3  # databases, of branches between which one changes


@contextmanager
def running(data: Path) -> Iterator[dict[str, str]]:
    """Run a PostgreSQL that is fast and not durable; yield its connection parameters."""
    if programs := os.environ.get(PROGRAMS):
        installation.packaged_programs = lambda: Path(programs)
        cluster._check_version = lambda installation, folder: (
            None
        )  # a folder is of the version of its programs
    parsed = options.read({"TABLERO_DATA": str(data)})
    with embedded.running(parsed, purpose="test", say=lambda line: None, settings=FAST):
        socket_folder = DataFolder(parsed.data).socket_folder
        yield {"host": str(socket_folder), "port": "5432", "user": "tablero", "dbname": "tablero"}


def copy_prepared(data: Path) -> None:
    """Fill a new data folder with the prepared database, which the first process that needs it makes."""
    from tests.live_server import copy_data

    folder = user_cache_path("tablero") / "test databases"
    folder.mkdir(parents=True, exist_ok=True)
    prepared = folder / key()
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not prepared.exists():
            prepare(prepared)
            for old in sorted(folder.glob("?" * len(prepared.name)), key=lambda path: path.stat().st_mtime)[
                :-KEPT
            ]:
                shutil.rmtree(old, ignore_errors=True)
        fcntl.flock(file, fcntl.LOCK_SH)
        copy_data(prepared, data)


def prepare(prepared: Path) -> None:
    """Make the database in a process of its own, so that nothing of it is left in this one."""
    # root's PostgreSQL is an unprivileged user, who may not enter the cache
    work = Path(tempfile.mkdtemp(prefix="tablero-prepared-"))
    work.chmod(0o711)
    unfinished = prepared.with_suffix(".unfinished")
    try:
        subprocess.run([sys.executable, "-m", "tests.prepared", str(work / "data")], cwd=ROOT, check=True)
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run(["cp", "-a", str(work / "data"), str(unfinished)], check=True)
        os.utime(unfinished)
        unfinished.rename(prepared)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def key() -> str:
    """Return a hash of all files that decide about the tables, and of the machine's part in it."""
    parts = hashlib.sha256(f"{sys.version} {os.getuid()} {os.environ.get(PROGRAMS)}".encode())
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            parts.update(str(path.relative_to(ROOT)).encode())
            parts.update(hashlib.sha256(path.read_bytes()).digest())
    return parts.hexdigest()[:32]


def main() -> None:
    """Make the database in the data folder of the argument."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection

    from storage.server.database import close_pools

    with running(Path(sys.argv[1])) as postgres:
        connection.settings_dict["HOST"] = settings.DATABASES["default"]["HOST"] = postgres["host"]
        settings.SERVER_SECRET = b"the secret of the tests"
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        assert connection.settings_dict["NAME"] == DATABASE
        connection.close()
        close_pools()


if __name__ == "__main__":
    main()
