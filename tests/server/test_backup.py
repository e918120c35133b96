"""`manage.py backup` and `restore`, as an operator runs them."""

import os
import stat
import subprocess
import tarfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import psycopg
import pytest
from azure.data.tables import TableAccessPolicy, TableServiceClient

from storage.backups import last_backup
from storage.backups.last_backup import Kind, LastBackup
from storage.runtime import doctor
from storage.server import embedded, options
from storage.server.backups import description, programs
from storage.server.backups.description import Backup, SecretIn
from storage.server.backups.files import verify
from storage.server.backups.stores import FolderDraft, FolderStore
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from tests.commands import command, manage, run_process
from tests.live_server import KEY, clean_environment, copy_data, start_server
from tests.waiting import wait_for

PASSPHRASE = "correct horse battery staple"


def service(live):
    return TableServiceClient.from_connection_string(live.connection_string)


def entity(row, value=0):
    return {"PartitionKey": "p", "RowKey": f"{row:05}", "Value": value}


def flip(path, position):
    with path.open("r+b") as file:
        file.seek(position)
        [byte] = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def read(folder):
    return Backup.read(FolderStore(folder.parent), folder.name)


@pytest.fixture
def backups(scratch):
    return scratch / f"backups-{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def live(seed, scratch):
    """Start a server with a table and a backup of it; tests leave both as they are."""
    data = copy_data(seed, scratch / "filled")
    (data / "config").mkdir(exist_ok=True)
    (data / "config" / "custom.conf").write_text("summarize_wal = on\n")
    with start_server(data) as live, service(live) as client:
        table = client.create_table("stock")
        for row in range(20):
            table.create_entity(entity(row))
        client.create_table("former")
        client.delete_table("former")
        manage("backup", scratch / "good", "--data", data)
        yield live


@pytest.fixture(scope="module")
def filled(live):
    return live.data


@pytest.fixture
def good(filled, scratch):
    return description.last(FolderStore(scratch / "good"))


@pytest.fixture(scope="module")
def restored(live, scratch):
    """Start a server on the data of a sealed backup made during writes, and return the original content."""
    data, backups, passphrase = live.data, scratch / "sealed", scratch / "passphrase"
    passphrase.write_text(PASSPHRASE + "\n")
    acknowledged = {}
    is_over = threading.Event()

    def write():
        for number in range(100, 100_000):
            if is_over.is_set():
                return
            stock.upsert_entity(entity(number % 1000, number))
            acknowledged[number % 1000] = number

    with service(live) as client:
        live.change_accounts("add", "shop", "--key1", live.key)
        stock = client.get_table_client("stock")
        policy = TableAccessPolicy(expiry=datetime(2090, 1, 1, tzinfo=UTC), permission="r")
        stock.set_table_access_policy({"reader": policy})
        quiet = client.create_table("quiet")
        for row in range(20):
            quiet.upsert_entity(entity(row, 1))
        before_change = quiet.get_entity("p", "00019").metadata["timestamp"].tables_service_value
        quiet.upsert_entity(entity(0, 2))
        writer = threading.Thread(target=write)
        writer.start()
        wait_for(lambda: len(acknowledged) >= 20)
        promised = dict(acknowledged)
        said = manage("backup", backups, "--data", data, "--passphrase-file", passphrase)
        is_over.set()
        writer.join()
        known = list(quiet.list_entities())
    assert "verified." in said
    made = description.last(FolderStore(backups))
    into = scratch / "restored"
    said = manage("restore", made.location, "--data", into, "--passphrase-file", passphrase)
    assert "accounts: 2, tables: " in said
    with start_server(into) as other, service(other) as client:
        yield SimpleNamespace(
            live=other,
            stock=client.get_table_client("stock"),
            quiet=client.get_table_client("quiet"),
            promised=promised,
            known=known,
            before_change=before_change,
            backup=made,
            original=data,
        )


def test_a_sealed_backup_is_private(restored):
    assert (restored.backup.kind, restored.backup.secret) == (Kind.FILES, SecretIn.SEALED)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path(restored.backup.location).parent.rglob("*")}
    assert modes <= {0o600, 0o700}
    assert (restored.live.data / "secret").read_text() == (restored.original / "secret").read_text()


def test_every_acknowledged_write_survives(restored):
    values = {int(it["RowKey"]): it["Value"] for it in restored.stock.list_entities()}
    assert all(values[row] >= value for row, value in restored.promised.items())
    after = [(dict(it), it.metadata) for it in restored.quiet.list_entities()]
    assert after == [(dict(it), it.metadata) for it in restored.known]


def test_history_survives(restored):
    as_of = {"x-tablero-as-of": restored.before_change}
    assert restored.quiet.get_entity("p", "00000", headers=as_of)["Value"] == 1


def test_policies_and_keys_survive(restored):
    assert restored.stock.get_table_access_policy().keys() == {"reader"}
    shop = restored.live.connection_string.replace(restored.live.account, "shop")
    with TableServiceClient.from_connection_string(shop) as client:
        client.create_table("opens")


def test_a_killed_backup_leaves_nothing_that_looks_like_one(live, filled, backups):
    """Killed as soon as it writes, and when the database is being copied; the next run cleans up."""
    for written in ("*", "database/*"):
        others = set(backups.glob(".*.part"))
        process = subprocess.Popen(
            command("backup", backups, "--data", filled),
            env=clean_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

        def has_written(others=others, process=process, written=written):
            made = set(backups.glob(".*.part")) - others
            return any(list(it.glob(written)) for it in made) or process.poll() is not None

        wait_for(has_written)
        process.kill()
        process.wait()
    complete = description.backups(FolderStore(backups))  # it was faster
    for backup in complete:
        assert "passed" in manage("backup", "--test", backup.folder, "--data", filled)
    manage("backup", backups, "--data", filled)
    assert live.process.poll() is None
    assert len(description.backups(FolderStore(backups))) == len(complete) + 1
    assert not list(backups.glob(".*.part"))


def test_a_server_that_ends_during_a_backup_is_the_reason_why_it_failed(
    filled, backups, tmp_path, monkeypatch
):
    """pg_basebackup has sent whole files by then, so that only its manifest is missing."""
    with tarfile.open(tmp_path / "sent.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(filled / "database" / "PG_VERSION", "PG_VERSION")
    error = "pg_basebackup: error: could not read COPY data: server closed the connection unexpectedly"
    program = tmp_path / "pg_basebackup"
    program.write_text(f"#!/bin/sh\nhead -c 1024 {tmp_path}/sent.tar\necho '{error}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(programs.installation, "packaged_programs", lambda: tmp_path)
    said = manage("backup", backups, "--data", filled, status=1)
    assert (
        "pg_basebackup failed: could not read COPY data: server closed the connection unexpectedly." in said
    )


def test_a_changed_byte_is_refused(good, filled, backups, data):
    copy = copy_data(good.folder, backups)
    largest = max((copy / "database" / "base").rglob("[0-9]*"), key=lambda it: it.stat().st_size)
    log = min((copy / "database" / "pg_wal").glob("0*"))
    names = ("database/global/1262", "database/backup_manifest", "secret", "backup.json")
    for path in (*(copy / name for name in names), largest, log):
        position = path.stat().st_size // 2
        flip(path, position)
        with pytest.raises(Refusal, match="is damaged"):
            verify(read(copy))
        flip(path, position)
    verify(read(copy))
    flip(largest, 5)
    assert "is damaged" in manage("backup", "--test", copy, "--data", filled, status=1)
    assert "is damaged" in manage("restore", copy, "--data", data, status=1)
    assert not data.exists()


def test_missing_and_additional_files_are_refused(good, filled, backups):
    copy = copy_data(good.folder, backups)
    (copy / "database" / "more").touch()
    with pytest.raises(Refusal, match="more, which does not belong to it"):
        verify(read(copy))
    (copy / "database" / "more").unlink()
    (copy / "database" / "elsewhere").symlink_to(filled)
    with pytest.raises(Refusal, match="elsewhere, which is a link"):
        verify(read(copy))
    (copy / "database" / "elsewhere").unlink()
    (copy / "secret").unlink()
    with pytest.raises(Refusal, match="secret, which is missing"):
        verify(read(copy))
    (copy / "backup.json").unlink()
    assert "There is no backup in" in manage("restore", copy, status=1)


def test_the_drill_compares_with_what_was_counted(good, backups, data):
    manage("restore", good.location, "--data", data)
    manage(
        "backup", backups.with_name(f"{backups.name}-at-rest"), "--data", data
    )  # it counts what is at rest
    copy = copy_data(Path(last_backup.read(data).last.path), backups)
    made = read(copy)
    [name] = [name for name in made.relations if name.startswith("entity_")]
    (copy / "backup.json").unlink()
    assert made.relations[name].rows == 20
    content = made.relations[name]
    pk, rk, _ = min(content.sample)
    made.relations[name] = type(content)(21, content.sample | {(pk, rk, "0" * 32)})
    made.publish(FolderDraft(copy, changed := copy.with_name(f"{copy.name}-changed")))
    said = manage("backup", "--test", changed, status=1)
    assert "has 20 rows instead of 21" in said
    assert "has other content in 1 of 11 entities" in said


def test_a_failure_is_remembered_until_the_next_one(good, filled, tmp_path):
    (tmp_path / "file").touch()
    said = manage("backup", tmp_path / "file" / "backups", "--data", filled, status=1)
    assert last_backup.read(filled).failure.reason in said


def test_a_folder_with_a_database_is_kept(good, filled, seed, data):
    used = copy_data(seed, data)
    with DataFolder(used).held("serve"):
        said = manage("restore", good.folder, "--data", used, "--replace", status=1)
        assert f"A server runs on {used} (process {os.getpid()})" in said
    assert "There is a database in" in manage("restore", good.folder, "--data", used, status=1)
    said = manage("restore", good.folder, "--data", used, "--replace")
    [kept] = used.parent.glob(f"{used.name}.*")
    assert f"The data from before are in {kept}." in said
    assert "tables: 0" not in said and (kept / "database").is_dir() and (kept / "secret").is_file()


def test_incremental_backups_and_the_number_to_keep(live, filled, backups):
    said = manage("backup", backups, "--data", filled, "--incremental", status=1)
    assert "make a full one first" in said
    manage("backup", backups, "--data", filled)
    with service(live) as client:
        client.create_table("later").create_entity(entity(1))
    manage("backup", backups, "--data", filled, "--incremental", "--keep", "1")
    full, incremental = description.backups(FolderStore(backups))
    assert (incremental.kind, incremental.parent) == (Kind.INCREMENTAL, full.name)
    assert incremental.size < full.size
    assert "passed" in manage("backup", "--test", backups, "--data", filled)
    said = manage("backup", backups, "--data", filled, "--keep", "1")
    assert said.count("Deleted the older backup") == 2
    [last] = description.backups(FolderStore(backups))
    assert last.kind is Kind.FILES


def test_the_doctor_says_when_the_last_backup_was_made(good, filled, settings):
    settings.OPTIONS = options.read({"TABLERO_DATA": str(filled)})

    def examine():
        return "\n".join(f"{finding.severity}: {finding.text}" for finding in doctor.parts()["backup"]())

    made = last_backup.read(filled).last
    assert made.made_at >= good.started_at
    assert f"ok: The last backup is of {made.made_at:%Y-%m-%d %H:%M} UTC" in examine()
    last_backup.record(filled, LastBackup(good.started_at - timedelta(days=8), str(good.folder)))
    assert "warning: The last backup is of" in examine()
    (filled / last_backup.NAME).unlink()
    assert "ok: The command backup has made no backup" in examine()


def test_one_backup_at_a_time(filled, backups):
    with FolderStore(backups).held():
        status, said = run_process("backup", backups, "--data", filled)
    assert status == 1 and said.startswith("tablero: ") and f"is running (process {os.getpid()})" in said


def test_refusals_name_cause_and_fix(filled, backups, tmp_path):
    (tmp_path / "short").write_text("short")
    for arguments, said in {
        (filled / "here", "--data", filled): "is in the data folder",
        (tmp_path / "short" / "er", "--data", filled): "It is not possible to write to",
        (backups, "--data", tmp_path / "typo"): "There is no database in",
        (backups, "--data", filled, "--passphrase-file", tmp_path / "short"): "too short",
        (backups, "--data", filled, "--passphrase-file", tmp_path / "none"): "cannot be read",
        (backups, "--data", filled, "--test"): "There is no backup in",
        (backups, "--test", "--list"): "not allowed with",
    }.items():
        assert said in manage("backup", *arguments, status=1)
    for option in ("--to=latest", "--switch", "--replace"):
        assert "leave out --to" in manage(
            "restore", backups, "--secret-only", option, "--data", filled, status=1
        )
    (tmp_path / "long").write_text(PASSPHRASE)
    arguments = ("backup", backups, "--data", filled, "--passphrase-file", tmp_path / "long")
    assert "TABLERO_SECRET has characters" in manage(*arguments, status=1, TABLERO_SECRET="ä" * 20)
    assert [it.name for it in backups.iterdir()] == [".lock"] and not (tmp_path / "typo").exists()


def test_an_external_database(good, backups, data):
    """The database of a data folder stands for an external one."""
    manage("restore", good.location, "--data", data)
    secret = (data / "secret").read_text().strip()
    with embedded.running(options.read({"TABLERO_DATA": str(data)}), purpose="test", say=print):
        folder = DataFolder(data).socket_folder

        def url(name):
            return f"postgresql://tablero@/{name}?host={str(folder).replace('/', '%2F')}"

        execute(data, "CREATE DATABASE other")
        given = {"DATABASE_URL": url("tablero"), "TABLERO_SECRET": secret}
        assert "TABLERO_SECRET and is not in the backup" in manage("backup", backups, **given)
        made = description.last(FolderStore(backups))
        assert (made.kind, made.secret) == (Kind.DUMP, SecretIn.ABSENT)
        assert "passed" in manage("backup", "--test", backups, **given)
        assert "is not empty" in manage("restore", backups, status=1, **given)
        said = manage("restore", backups, **{**given, "DATABASE_URL": url("other")})
        assert "accounts: 1, tables: " in said
        execute(data, "DROP DATABASE other WITH (FORCE)")
    into = data.with_name(f"{data.name}-of-dump")
    assert "accounts: 1, tables: 1, entities: 20." in manage("restore", backups, "--data", into)
    with embedded.running(options.read({"TABLERO_DATA": str(into)}), purpose="serve", say=print):
        [[table]] = execute(into, "SELECT id FROM storage_table WHERE deleted_at IS NULL")
        assert execute(into, f"SELECT count(*) FROM entity_{table}") == [(20,)]
        assert KEY in manage("account", "list", "--keys", "--data", into, TABLERO_SECRET=secret)


def execute(data, statement):
    with psycopg.connect(
        host=str(DataFolder(data).socket_folder), user="tablero", dbname="tablero", autocommit=True
    ) as db:
        cursor = db.execute(statement)
        return cursor.fetchall() if cursor.description else []
