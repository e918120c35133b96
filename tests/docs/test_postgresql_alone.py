"""Backups are restored by the programs of PostgreSQL alone, with the commands of the documents."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from azure.data.tables import EdmType, EntityProperty, TableServiceClient

from storage.backups import archive
from storage.server import installation, options
from storage.server.archive import archiving
from storage.server.data_folder import DataFolder
from storage.server.installation import MAJOR_VERSION as MAJOR
from tests.commands import manage
from tests.docs.pages import DOCS, blocks
from tests.live_server import start_server
from tests.seeds import seeded
from tests.waiting import wait_for

pytestmark = pytest.mark.long
FULL, INCREMENTAL, MOMENT, OURS, UNSEAL = [
    block
    for block in blocks(DOCS / "operations.md", "sh")
    if any(
        word in block
        for word in ("pg_verifybackup", "pg_combinebackup", "recovery.signal", "mv restored", "--unseal")
    )
]
REST = FULL[FULL.index("pg_verifybackup") :]  # from where on the restores of all backups are the same


class Source:
    """A folder with backups and an archive of a table of 10, 20 and 30 entities, and moments in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = seeded(folder / "server")
        self.moments: list[str] = []
        (self.data / "config").mkdir(exist_ok=True)
        (self.data / "config" / "custom.conf").write_text("summarize_wal = on\n")
        (folder / "passphrase").write_text("correct horse battery staple")
        with start_server(self.data, "--archive", str(folder / "archive")) as live:
            wait_for(lambda: (summary := archive.read(self.data)) and summary.base_at)
            with TableServiceClient.from_connection_string(live.connection_string) as client:
                people = client.create_table("people")
                for number, ends in enumerate((self._full, self._incremental, self._segment)):
                    for row in range(10):
                        born = EntityProperty(row << 40, EdmType.INT64)
                        keys = {"PartitionKey": "se", "RowKey": f"{number}{row}"}
                        people.create_entity({**keys, "Age": 36, "Born": born})
                    self.moments.append(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}+00")
                    ends()

    def _full(self) -> None:
        manage("backup", self.folder / "backups", "--data", self.data)
        sealed = ("--passphrase-file", self.folder / "passphrase")
        manage("backup", self.folder / "sealed", "--data", self.data, *sealed)

    def _incremental(self) -> None:
        manage("backup", self.folder / "backups", "--data", self.data, "--incremental")

    def _segment(self) -> None:
        settings = options.read({"TABLERO_DATA": str(self.data)})
        name = archiving.flush(settings)
        wait_for((self.folder / "archive" / "wal" / f"{name}.gz").exists)


@pytest.fixture(scope="module")
def source(scratch: Path) -> Source:
    folder = scratch / "alone"
    folder.mkdir(mode=0o755)
    return Source(folder)


def runs(program: Path) -> bool:
    return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def plain_shell(source: Source, scratch: Path) -> Iterator[Callable[..., str]]:
    """Return `plain_shell(*lines, **variables)`: bash with PostgreSQL's programs beside backups and archive."""
    folder = scratch / uuid4().hex[:8]
    folder.mkdir(mode=0o755)
    for name in ("backups", "archive"):
        shutil.copytree(source.folder / name, folder / name)
    user: Any = {}
    programs = installation.packaged_programs()
    if os.geteuid() == 0:
        # all programs, where that user may enter
        complete = installation.find_complete(
            options.read({}), DataFolder(source.data), MAJOR, folder / "programs"
        )
        programs, user = complete.programs, complete.popen
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user["user"], user["group"], follow_symlinks=False)

    is_verifying = runs(programs / "pg_verifybackup")  # the one in the package crashes

    def run(*blocks: str, **variables: str) -> str:
        lines = "\n".join(blocks).splitlines()
        given = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), **variables}
        script = "\n".join(line for line in lines if is_verifying or "pg_verifybackup" not in line)
        command = ["bash", "-euo", "pipefail", "-c", script]
        # the output to a file: the server that they start would keep a pipe open
        with (folder / "output").open("w+") as output:
            done = subprocess.run(
                command, cwd=folder, env=given, stdout=output, stderr=output, timeout=180, check=False, **user
            )
            output.seek(0)
            said = output.read()
        assert done.returncode == 0, said
        return said

    yield run
    shutil.rmtree(folder, ignore_errors=True)


def test_a_full_backup(plain_shell: Callable[..., str]) -> None:
    said = plain_shell(FULL.replace("tail -n 1", "head -n 1"))
    assert "(10 rows)" in said
    assert '{"Age":36,"Born@odata.type":"Edm.Int64","Born":"1099511627776"}' in said


def test_an_incremental_backup_which_is_a_data_folder_again(
    plain_shell: Callable[..., str], scratch: Path
) -> None:
    said = plain_shell("backup=$(ls -d backups/2* | tail -n 1)", INCREMENTAL, REST, OURS, "pwd")
    assert "(20 rows)" in said
    data = Path(said.split()[-1]) / "data"
    if os.geteuid() == 0:
        os.chown(data, 0, 0)
        os.chown(data / "secret", 0, 0)
    with (
        start_server(data) as live,
        TableServiceClient.from_connection_string(live.connection_string) as client,
    ):
        assert len(list(client.get_table_client("people").list_entities())) == 20


def test_a_moment_of_the_archive(plain_shell: Callable[..., str], source: Source) -> None:
    query = REST[REST.index("pg_ctl start") :]
    for moment, rows in zip(source.moments, (10, 20, 30), strict=True):
        said = plain_shell("rm -rf restored", MOMENT, query, moment=moment)
        assert "ALTER SYSTEM" in said and f"({rows} rows)" in said


def test_a_sealed_backup_once_it_is_unsealed(plain_shell: Callable[..., str], source: Source) -> None:
    command = UNSEAL.replace("python3 manage.py ", "").replace("plain backups", "plain sealed").split()
    folders = {name: source.folder / name for name in ("plain", "sealed", "passphrase")}
    said = manage(*(folders.get(word, word) for word in command), "--data", source.folder / "none")
    [made] = (source.folder / "plain").glob("2*")
    assert str(made) in said and (made / "secret").read_text() == (source.data / "secret").read_text()
    assert "passed in" in manage("backup", "--test", source.folder / "plain")
    target = plain_shell("pwd").strip()
    copied = shutil.copytree(made, Path(target) / "backups" / made.name, dirs_exist_ok=True)
    if os.geteuid() == 0:
        for path in (copied, *copied.rglob("*")):
            shutil.chown(path, Path(target).stat().st_uid, Path(target).stat().st_gid)
    said = plain_shell(f"backup=backups/{made.name}", FULL.partition("\n")[2])
    assert "(10 rows)" in said


def test_the_tar_of_a_backup(plain_shell: Callable[..., str], source: Source) -> None:
    """A bucket has the database as one file, as pg_basebackup wrote it."""
    pack = 'backup=$(ls -d backups/2* | head -n 1); tar -cf "$backup/database.tar" -C "$backup/database" .'
    unpack = FULL.splitlines()[1].partition("# or: ")[2]
    said = plain_shell(pack, unpack, REST)
    assert "(10 rows)" in said
