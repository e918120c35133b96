"""An archive in a folder, a bucket of S3 and a container of Azure Blob Storage, sealed or not."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.backups import archive
from storage.server import embedded, metrics, options
from storage.server.archive import archiver, archiving, base_backups, keeper, point_in_time
from storage.server.archive.archive_store import LOG, TIMELINES, Archive, NotAnArchive
from storage.server.archive.archiving import Config
from storage.server.archive.catalog import Catalog, Segment, name_of_use
from storage.server.backups import sealing
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from tests.commands import manage
from tests.server import object_stores
from tests.server.test_backup import PASSPHRASE, execute
from tests.server.test_backup_stores import azure, location, s3
from tests.waiting import wait_for

__all__ = ["azure", "location", "s3"]
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
OWNER = archiver.Owner("7000000000000000001", is_sealed=True)
SEGMENT = bytes(range(256)) * (1 << 16)


@pytest.fixture(autouse=True)
def _derives_keys_quickly(monkeypatch):
    monkeypatch.setattr(sealing, "_COST", 1 << 10)


@pytest.fixture
def passphrase(tmp_path):
    path = tmp_path / "passphrase"
    path.write_text(PASSPHRASE)
    return path


@pytest.fixture
def sealed(location, passphrase):
    """Return a new, sealed archive."""
    if "://" not in location:
        Path(location).mkdir()
    made = Archive(location, passphrase)
    made.create(OWNER.system)
    made.open()
    return made


def waiting(folder, number, content=SEGMENT):
    path = folder / Segment(1, number).name
    path.write_bytes(content)
    return path


def test_a_segment_is_sealed_and_may_come_twice_but_not_with_other_content(sealed, passphrase, tmp_path):
    source = waiting(tmp_path, 3)
    archiver.push(source, sealed, OWNER)
    archiver.push(source, sealed, OWNER)
    later = Archive(sealed.location, passphrase)
    assert Catalog.read(later).segments.keys() == {Segment(1, 3)}
    assert later.read_segment(source.name) == SEGMENT
    modified = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    assert abs(later.time_of(source.name) - modified) < timedelta(milliseconds=1)
    with later.store.open(LOG, f"{source.name}.gz.sealed") as reader:
        assert SEGMENT[:64] not in (content := reader.read()) and not content.startswith(b"\x1f\x8b")
    with pytest.raises(archiver.Failure, match="another server seems to use"):
        archiver.push(waiting(tmp_path, 3, SEGMENT[::-1]), sealed, OWNER)
    with pytest.raises(archiver.Failure, match="of another database"):
        archiver.push(source, sealed, archiver.Owner("1"))
    later.remove(LOG, f"{source.name}.gz")
    with pytest.raises(Refusal, match="is missing"):
        later.read_segment(source.name)


def test_timelines_are_found_again(sealed, passphrase):
    sealed.write(TIMELINES, name_of_use(1, NOW), b"")
    sealed.write(TIMELINES, name_of_use(2, NOW + timedelta(hours=1)), b"")
    uses = Catalog.read(Archive(sealed.location, passphrase)).uses
    assert [(it.timeline, it.start) for it in uses] == [(1, NOW), (2, NOW + timedelta(hours=1))]


@pytest.fixture
def in_folder(tmp_path, passphrase):
    """Return a sealed archive in a folder, with a segment and a timeline."""
    (tmp_path / "archive").mkdir()
    made = Archive(str(tmp_path / "archive"), passphrase)
    made.create(OWNER.system)
    archiver.push(waiting(tmp_path, 3), made, OWNER)
    made.write(TIMELINES, name_of_use(1, NOW), b"")
    return made


def test_changed_and_forged_files_are_refused(in_folder, tmp_path):
    folder = tmp_path / "archive"
    path = folder / LOG / f"{Segment(1, 3).name}.gz.sealed"
    content = path.read_bytes()
    path.with_name(f"{Segment(1, 4).name}.gz.sealed").write_bytes(content)  # under another name
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for number in (3, 4):
        with pytest.raises(Refusal, match="is damaged"):
            in_folder.read_segment(Segment(1, number).name)
    use = folder / TIMELINES / f"{name_of_use(2, NOW)}.sealed"
    use.touch()
    with pytest.raises(NotAnArchive, match="is damaged"):
        Catalog.read(in_folder)
    use.unlink()
    (folder / TIMELINES / name_of_use(2, NOW)).touch()  # not sealed, so not of this archive
    assert [it.timeline for it in Catalog.read(in_folder).uses] == [1]


def test_an_archive_that_is_no_longer_sealed_gets_nothing(in_folder, tmp_path):
    (tmp_path / "archive" / "archive.json").write_text(f'{{"format": 1, "system": "{OWNER.system}"}}')
    with pytest.raises(archiver.Failure, match="was sealed and is no more"):
        archiver.push(waiting(tmp_path, 5), in_folder, OWNER)


def test_a_sealed_archive_needs_its_passphrase(in_folder, tmp_path):
    with pytest.raises(NotAnArchive, match="is sealed; give the passphrase"):
        Catalog.read(Archive(in_folder.location))
    (tmp_path / "wrong").write_text("another passphrase")
    with pytest.raises(NotAnArchive, match="does not open this archive"):
        Catalog.read(Archive(in_folder.location, tmp_path / "wrong"))


def test_a_server_does_not_start_with_another_passphrase(used, in_folder, tmp_path):
    (tmp_path / "wrong").write_text("another passphrase")
    given = {"TABLERO_ARCHIVE": in_folder.location, "TABLERO_BACKUP_PASSPHRASE_FILE": str(tmp_path / "wrong")}
    serving = options.read({"TABLERO_DATA": str(used), **given})
    with (
        pytest.raises(Refusal, match="does not open this archive"),
        embedded.running(serving, purpose="serve", say=print),
    ):
        pass


@pytest.mark.long
def test_an_archive_without_a_seal_takes_no_passphrase(used, passphrase, monkeypatch):
    """An attacker who can write to the bucket may have replaced a sealed archive."""
    monkeypatch.setattr(keeper, "_LOOK", 1.0)
    place, target = (used.with_name(f"{used.name}-{name}") for name in ("archive", "target"))
    with serving(used, place, ""):
        wait_for(lambda: (summary := archive.read(used)) and summary.base_at, patience=300)
    request = point_in_time.Request(None, str(place), passphrase)
    with pytest.raises(Refusal, match="is not sealed, so that others can have made or changed it"):
        point_in_time.restore_moment(options.read({"TABLERO_DATA": str(target)}), request, print)


@contextmanager
def serving(data, location, passphrase):
    """Run the database of a server and the keeper of its archive."""
    given = {"TABLERO_ARCHIVE": str(location), "TABLERO_BACKUP_PASSPHRASE_FILE": str(passphrase)}
    result = options.read({"TABLERO_DATA": str(data), **given})
    with (
        metrics.counting(),
        embedded.running(result, purpose="serve", say=print),
        keeper.running(result),
    ):
        yield result


@pytest.mark.long
def test_a_moment_is_restored_from_a_sealed_bucket_and_from_its_plain_copy(used, s3, passphrase, monkeypatch):
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    for name, seconds in {"_LOOK": 1.0, "_LOOK_AFTER_PROBLEM": 0.5, "_SLOWER": 1}.items():
        monkeypatch.setattr(keeper, name, seconds)
    place = f"s3://{object_stores.BUCKET}/archive-{used.name}"
    first, second, plain = (used.with_name(f"{used.name}-{name}") for name in ("first", "second", "plain"))
    unlock = ("--passphrase-file", passphrase)
    with serving(used, place, passphrase) as result:
        wait_for(lambda: (summary := archive.read(used)) and summary.base_at, patience=300)
        execute(used, "CREATE TABLE stock AS SELECT 11 AS value")
        moment = datetime.now(UTC)
        execute(used, "UPDATE stock SET value = 22")
        name = archiving.flush(result)
        wait_for(lambda: archiver.read_state(used / "archive" / "state.json")["archived"] >= name)
        store = Config.read(DataFolder(used)).open()
        wait_for(lambda: not archive.read(used).problems)
        assert archive.read(used).folder == place
        assert "The database can be restored to" in manage("doctor", "--data", used)
    inside = [file for it in ("base", LOG, TIMELINES) for file in store.store.files(it)]
    assert len(inside) > 5 and all(it.endswith((".sealed", "backup.json")) for it in inside)
    assert "All of it can be read." in manage("archive", "--verify", place, "--data", first, *unlock)
    assert "is sealed; give the passphrase" in manage(
        "restore", place, "--to", "latest", "--data", first, status=1
    )
    manage("restore", place, "--to", moment.isoformat(), "--data", first, *unlock)
    assert value_in(first) == 11
    manage("archive", place, "--unseal", plain, "--data", first, *unlock)
    manage("restore", plain, "--to", "latest", "--data", second)
    assert value_in(second) == 22
    catalog = Catalog.read(store)
    base_backups.prune(store, timedelta(0), None, print)
    assert min(Catalog.read(store).segments).number == catalog.bases[-1].first


def value_in(data):
    (data / "archive" / "config.json").unlink(missing_ok=True)
    with embedded.running(options.read({"TABLERO_DATA": str(data)}), purpose="test", say=print):
        [[value]] = execute(data, "SELECT value FROM stock")
    return value
