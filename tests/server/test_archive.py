"""`serve --archive` and `restore --to`: archived log, and the database as it was at a moment."""

import gzip
import json
import os
import random
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psutil
import psycopg
import pytest
from azure.core.exceptions import AzureError
from azure.data.tables import TableServiceClient

from storage.backups import archive
from storage.backups.archive import Found, Period, Problem
from storage.server import embedded, folder_switch, metrics, options
from storage.server.archive import (
    archiver,
    archiving,
    base_backups,
    inspection,
    keeper,
    moments,
    point_in_time,
)
from storage.server.archive.archive_store import Archive, NotAnArchive, compress
from storage.server.archive.catalog import (
    BaseBackup,
    Catalog,
    Segment,
    name_of_use,
    number_of,
)
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal
from tests.commands import manage
from tests.live_server import ROOT, start_server
from tests.waiting import wait_for

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SYSTEM = "7000000000000000001"
OWNER = archiver.Owner(SYSTEM)
BLOCK = 1 << 20


def fill(number):
    return bytes([number % 256]) * (16 << 20)


class Synthetic:
    """An archive of empty segments that end an hour apart from each other, from NOW on."""

    def __init__(self, path):
        self.path = path
        for name in ("base", "timelines", "wal"):
            (path / name).mkdir(parents=True)
        (path / "archive.json").write_text(json.dumps({"format": 1, "system": SYSTEM}))

    def segments(self, timeline, *numbers, start=NOW):
        for number in numbers:
            modified = int((start + number * HOUR).timestamp() * 1e9)
            path = self.path / "wal" / f"{Segment(timeline, number).name}.gz"
            path.write_bytes(compress(b"", modified))

    def base(self, name, timeline, number, at):
        (self.path / "base" / name).mkdir()
        made = BaseBackup(name, at, timeline, number, number, 100)
        (self.path / "base" / f"{name}.json").write_text(made.in_json())

    def use(self, timeline, start):
        (self.path / "timelines" / name_of_use(timeline, start)).touch()

    def fork(self, timeline, text):
        path = self.path / "wal" / f"{timeline:08X}.history.gz"
        path.write_bytes(compress(text.encode(), 0))

    @property
    def archive(self):
        return Archive(str(self.path))

    @property
    def catalog(self):
        return Catalog.read(self.archive)


@pytest.fixture
def made(tmp_path):
    """Segments 2 to 9 that end at 2 to 9 hours, a base backup after 2.5 hours and one after 6.5."""
    result = Synthetic(tmp_path / "archive")
    result.use(1, NOW)
    result.segments(1, *range(2, 10))
    result.base("a", 1, 2, NOW + 2.5 * HOUR)
    result.base("b", 1, 6, NOW + 6.5 * HOUR)
    return result


def at(hours):
    return NOW + hours * HOUR


def chosen(catalog, hours):
    moment = None if hours is None else at(hours)
    return [(it.base.name, it.segments[-1].name[-2:]) for it in catalog.plan(moment)]


def test_names_and_positions_of_segments():
    assert Segment(1, 255).name == "0000000100000000000000FF"
    assert Segment(26, 256).name == "0000001A0000000100000000"
    assert Segment.parse(Segment(26, 999).name) == Segment(26, 999)
    for name in ("00000002.history", "000000010000000000000002.00000028.backup", "00000001000000000000000g"):
        assert Segment.parse(name) is None
    assert number_of("1/2000028") == 258


def test_the_plan_begins_with_the_newest_base_backup_before_the_moment(made):
    catalog = made.catalog
    assert catalog.periods() == [Period(at(2.5), at(9))]
    assert chosen(catalog, 2.4) == [] and chosen(catalog, 9.1) == []
    assert chosen(catalog, 3.5) == [("a", "04")]
    assert chosen(catalog, 4) == [("a", "04")]
    assert chosen(catalog, 7.5) == [("b", "08"), ("a", "08")]
    assert chosen(catalog, None) == [("b", "09"), ("a", "09")]


def test_the_first_time_that_can_be_restored_is_a_whole_second(made):
    second = timedelta(seconds=1)
    made.base("c", 1, 2, at(2) + 0.3 * second)
    [period] = made.catalog.periods()
    assert period.start == at(2) + second
    assert made.catalog.plan(period.start)


def test_a_missing_segment_ends_what_can_be_restored_until_the_next_base_backup(made):
    (made.path / "wal" / f"{Segment(1, 5).name}.gz").unlink()
    catalog = made.catalog
    assert [catalog.missing(it) for it in catalog.bases] == [[Segment(1, 5)], []]
    assert catalog.periods() == [Period(at(2.5), at(4)), Period(at(6.5), at(9))]
    assert chosen(catalog, 4.5) == [] and chosen(catalog, 7) == [("b", "07")]


def test_a_moment_is_restored_on_the_timeline_that_was_in_use_then(made):
    """Restored at 10 hours to 7.5 hours; at 20 hours the former folder was taken back."""
    made.fork(2, "1\t0/8000100\tbefore 2026-11-25 19:30:00+00\n")
    made.fork(3, "1\t0/8000100\tbefore 2026-11-25 19:30:00+00\n")  # a restore that was never used
    made.use(2, at(10))
    made.segments(2, 8, 9, 10, start=at(4))
    catalog = made.catalog
    assert catalog.periods() == [Period(at(2.5), at(9)), Period(at(10), at(14))]
    assert [it.timeline for it in catalog.plan(at(8.5))] == [1, 1]
    [plan, _] = catalog.plan(at(13))
    assert (plan.timeline, plan.base.name) == (2, "b")
    assert plan.segments == [Segment(1, 6), Segment(1, 7), Segment(2, 8), Segment(2, 9)]
    # a base backup of the old timeline from after the fork does not lead to the new one
    made.base("c", 1, 8, at(8.5))
    assert [it.name for it in made.catalog.bases_for(2)] == ["a", "b"]
    made.use(1, at(20))
    made.segments(1, 10, start=at(11))
    assert [it.timeline for it in made.catalog.plan(at(20.5))] == [1, 1, 1]
    assert made.catalog.plan(at(13))[0].timeline == 2
    assert made.catalog.plan(at(8.7))[0].base.name == "c"


def test_retention_keeps_what_the_oldest_moment_needs(made):
    assert {it.name for it in made.catalog.needed_bases(at(5))} == {"a", "b"}
    assert {it.name for it in made.catalog.needed_bases(at(7))} == {"b"}
    keep = datetime.now(UTC) - at(5)
    base_backups.prune(made.archive, keep, None, print)
    assert made.catalog.periods() == [Period(at(2.5), at(9))]
    size = made.catalog.size - 1
    base_backups.prune(made.archive, keep, size, print)
    assert made.catalog.periods() == [Period(at(6.5), at(9))]
    assert min(made.catalog.segments) == Segment(1, 6)
    assert sorted(it.name for it in (made.path / "base").iterdir()) == ["b", "b.json"]
    base_backups.prune(made.archive, timedelta(0), 1, print)  # the last one stays, however large
    assert made.catalog.periods() == [Period(at(6.5), at(9))]


def test_a_missing_segment_is_found_on_every_timeline(made):
    made.fork(2, "1\t0/8000100\tbefore 2026-11-25 19:30:00+00\n")
    made.use(2, at(10))
    made.segments(2, 8, 9, 10, start=at(4))
    assert made.catalog.gaps() == []
    for segment in (Segment(1, 3), Segment(1, 4), Segment(1, 8), Segment(2, 9)):
        (made.path / "wal" / f"{segment.name}.gz").unlink()
    assert made.catalog.gaps() == [Segment(1, 3), Segment(1, 4), Segment(1, 8), Segment(2, 9)]
    assert inspection.verify(made.archive, print)[-3:] == [
        f"{Segment(1, 3).name} to {Segment(1, 4).name} are missing in {made.path}/wal.",
        f"{Segment(1, 8).name} is missing in {made.path}/wal.",
        f"{Segment(2, 9).name} is missing in {made.path}/wal.",
    ]


def test_a_segment_without_its_time_is_damaged(made):
    last = made.path / "wal" / f"{Segment(1, 9).name}.gz"
    for content in (b"\x8d" * 100, gzip.compress(b""), b""):
        last.write_bytes(content)
        with pytest.raises(Refusal, match=rf"{last} is damaged\."):
            made.catalog.periods()
        [problem] = inspection.inspect(DataFolder(made.path), made.archive).summary.problems
        assert problem == Found(Problem.UNREADABLE, f"{last} is damaged.")


def test_an_archive_that_is_none(tmp_path):
    with pytest.raises(NotAnArchive, match=r"has no archive\.json"):
        Catalog.read(Archive(str(tmp_path)))
    folder = ("--data", tmp_path / "data")
    said = manage("archive", "--verify", tmp_path, *folder, status=1)
    assert said == f"{tmp_path} is not an archive: it has no archive.json."
    (tmp_path / "archive.json").write_text("{}")
    with pytest.raises(NotAnArchive, match="cannot be read"):
        Catalog.read(Archive(str(tmp_path)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latest", None),
        ("10 minutes ago", NOW - timedelta(minutes=10)),
        ("1 hour ago", NOW - HOUR),
        ("90s ago", NOW - timedelta(seconds=90)),
        ("2 d ago", NOW - timedelta(days=2)),
        ("2026-11-25T11:59:00Z", NOW - timedelta(minutes=1)),
        ("2026-11-25 11:59", NOW - timedelta(minutes=1)),
        ("2026-11-25T14:59:00.5+03:00", NOW - timedelta(seconds=59.5)),
    ],
)
def test_times(text, expected):
    assert moments.parse(text, NOW) == expected


@pytest.mark.parametrize("text", ["yesterday", "10 weeks ago", "", "11:59", "-5 minutes ago"])
def test_invalid_times_are_refused(text):
    with pytest.raises(Refusal, match="10 minutes ago"):
        moments.parse(text, NOW)
    with pytest.raises(Refusal, match="in the future"):
        moments.parse("2026-11-25T12:00:01Z", NOW)


def test_the_options():
    given = {"TABLERO_ARCHIVE": "/archive"}
    assert options.read({}).archive is None
    result = options.read(given).archive
    assert (str(result.folder), result.keep, result.size, result.backlog) == (
        "/archive",
        7 * 24 * HOUR,
        None,
        8 << 30,
    )
    result = options.read({**given, "TABLERO_ARCHIVE_SIZE": "50G", "TABLERO_BACKUP_EVERY": "6h"}).archive
    assert (result.size, result.every) == (50 << 30, 6 * HOUR)
    for text in ("50", "50 G", "31M", "1P"):
        with pytest.raises(Refusal, match="for example 512M or 2G"):
            options.read({**given, "TABLERO_ARCHIVE_SIZE": text})
    with pytest.raises(Refusal, match="TABLERO_ARCHIVE_KEEP needs TABLERO_ARCHIVE"):
        options.read({"TABLERO_ARCHIVE_KEEP": "3d"})


@pytest.fixture
def source(tmp_path):
    path = tmp_path / Segment(1, 3).name
    path.write_bytes(fill(3))
    return path


def test_a_segment_may_come_twice_but_not_with_other_content(made, source):
    target = made.path / "wal" / f"{source.name}.gz"
    target.unlink()
    archiver.push(source, made.archive, OWNER)
    assert gzip.decompress(target.read_bytes()) == made.archive.read_segment(source.name) == fill(3)
    modified = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    assert abs(made.catalog.time_of(Segment(1, 3)) - modified) < timedelta(milliseconds=1)
    archiver.push(source, made.archive, OWNER)
    source.write_bytes(fill(4))
    with pytest.raises(archiver.Failure, match="another server seems to use"):
        archiver.push(source, made.archive, OWNER)
    target.write_bytes(target.read_bytes()[:-9])
    with pytest.raises(archiver.Failure, match="other content"):
        archiver.push(source, made.archive, OWNER)
    with pytest.raises(Refusal, match="is damaged"):
        made.archive.read_segment(source.name)
    with pytest.raises(archiver.Failure, match="of another database"):
        archiver.push(source, made.archive, archiver.Owner("1"))
    (made.path / "archive.json").unlink()
    with pytest.raises(archiver.Failure, match="Is its disk mounted"):
        archiver.push(source, made.archive, OWNER)


def test_a_killed_copy_is_not_a_segment(made, tmp_path):
    """Killed while it copies the first segment, and one after others; what has its name is complete."""
    names = [Segment(1, number).name for number in range(20, 30)]
    content = random.Random(1).randbytes(BLOCK) * 16
    for name in names:
        (tmp_path / name).write_bytes(content)
    code = (
        "from pathlib import Path; from storage.server.archive.archive_store import Archive\n"
        "from storage.server.archive.archiver import Owner, push\n"
        f"archive = Archive({str(made.path)!r})\n"
        f"for name in {names!r}: push(Path({str(tmp_path)!r}) / name, archive, Owner({SYSTEM!r}))"
    )
    for complete in (0, 2):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
        wait_for(
            lambda process=process, complete=complete: (
                (len(pushed(made, names)) >= complete and list((made.path / "wal").glob(".*.part")))
                or process.poll() is not None
            )
        )
        process.kill()
        process.wait()
        assert all(
            len(made.archive.read_segment(it.name[:24])) == 16 << 20 for it in pushed(made, names)[-3:]
        )
    archiver.push(tmp_path / names[0], made.archive, OWNER)


def pushed(made, names):
    """Return the files of the segments with these names."""
    return [it for it in (made.path / "wal").glob("*.gz") if it.name[:24] in names]


@pytest.fixture
def waiting(tmp_path, made):
    """Make an archiver whose archive is unavailable, with three waiting segments."""
    wal = tmp_path / "pg_wal"
    (wal / "archive_status").mkdir(parents=True)
    folder = tmp_path / "data-archive"
    (folder / "done").mkdir(parents=True)
    for number in (20, 21, 22):
        (wal / Segment(1, number).name).write_bytes(fill(number))
        (wal / "archive_status" / f"{Segment(1, number).name}.ready").touch()
    made.path.rename(made.path.with_name("away"))
    return archiver.Archiver(wal, made.archive, OWNER, folder, 3 * (16 << 20))


def work(worker, steps=3):
    for _ in range(steps):
        worker.wait_until = 0.0
        worker.step()
        if worker.push is not None:
            worker.push.thread.join()


def test_unarchived_segments_wait_up_to_a_limit_and_their_loss_is_reported(waiting, made):
    work(waiting)
    assert waiting.failing.exists() and not list(waiting.done.iterdir())
    assert "Is its disk mounted" in waiting.state["failure"]["reason"]
    assert waiting.state["gap"] is None
    more = Segment(1, 23).name
    (waiting.wal / more).write_bytes(fill(23))
    (waiting.ready / f"{more}.ready").touch()
    work(waiting)
    assert len(list(waiting.done.iterdir())) == 4
    gap = archiver.read_state(waiting.state_file)["gap"]
    assert (gap["from"], gap["to"], gap["until"]) == (Segment(1, 20).name, more, None)
    for path in waiting.ready.iterdir():  # as PostgreSQL does with segments that it takes for archived
        path.unlink()
    made.path.with_name("away").rename(made.path)
    last = Segment(1, 24).name
    (waiting.wal / last).write_bytes(fill(24))
    (waiting.ready / f"{last}.ready").touch()
    work(waiting)
    assert [it.name for it in waiting.done.iterdir()] == [last] and not waiting.failing.exists()
    state = archiver.read_state(waiting.state_file)
    assert state["failure"] is None and state["gap"]["until"] is not None
    assert (made.path / "wal" / f"{last}.gz").exists()


def test_an_archive_that_does_not_answer_is_a_failure(waiting, made, monkeypatch):
    """A read never ends, as it may happen on a network."""
    monkeypatch.setattr(archiver, "HANGS", 0.0)
    made.path.mkdir()
    os.mkfifo(made.path / "archive.json")
    waiting.step()
    waiting.step()
    assert waiting.state["failure"]["reason"] == "The archive does not answer."
    assert waiting.failing.exists() and waiting.push.thread.is_alive()
    with (made.path / "archive.json").open("w") as file:
        file.write("{}")
    waiting.push.thread.join()


def test_two_folders_are_exchanged_at_once(tmp_path):
    """Killed after some exchanges, in another one: both names are there, one each way."""
    for name in ("data", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    code = (
        "from pathlib import Path; from storage.server.folder_switch import exchange\n"
        f"one, other = Path({str(tmp_path / 'data')!r}), Path({str(tmp_path / 'new')!r})\n"
        "while True: print(flush=True), exchange(one, other)"
    )
    for number in (1, 10, 200):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(number):
            process.stdout.readline()
        process.kill()
        process.communicate()
        results = [[it.name for it in (tmp_path / name).iterdir()] for name in ("data", "new")]
        assert sorted(results) == [["data"], ["new"]]


class Writer(threading.Thread):
    """Inserts entities one after the other, and remembers when each was sent and acknowledged."""

    def __init__(self, live, name):
        super().__init__()
        self.name = name
        self.live = live
        self.is_over = threading.Event()
        self.sent, self.acknowledged = [], []

    def run(self):
        with TableServiceClient.from_connection_string(self.live.connection_string, retry_total=0) as client:
            table = client.get_table_client("stock")
            while not self.is_over.is_set():
                number = len(self.sent)
                self.sent.append(datetime.now(UTC))
                try:
                    table.create_entity(
                        {"PartitionKey": self.name, "RowKey": f"{number:06}", "Text": "x" * 1000}
                    )
                except (AzureError, OSError):
                    return
                self.acknowledged.append(datetime.now(UTC))

    def check(self, numbers, moment):
        """Everything acknowledged before the moment is there, and nothing that was sent after it."""
        assert numbers == list(range(len(numbers)))
        assert (
            sum(it < moment for it in self.acknowledged)
            <= len(numbers)
            <= sum(it <= moment for it in self.sent)
        )


@contextmanager
def writing(live, prefix, number=3):
    writers = [Writer(live, f"{prefix}{index}") for index in range(number)]
    for it in writers:
        it.start()
    wait_for(lambda: all(len(it.acknowledged) > 20 for it in writers))
    try:
        yield writers
    finally:
        for it in writers:
            it.is_over.set()
            it.join()


def rows(data):
    """Return the numbers of the entities of each writer, as a database has them."""
    result = options.read({"TABLERO_DATA": str(data)})
    with (
        embedded.running(result, purpose="test", say=print),
        psycopg.connect(host=str(DataFolder(data).socket_folder), user="tablero", dbname="tablero") as db,
    ):
        [[table]] = db.execute("SELECT id FROM storage_table WHERE name = 'stock' AND deleted_at IS NULL")
        numbers = {}
        for pk, rk in db.execute(f"SELECT pk, rk FROM entity_{table} ORDER BY pk, rk"):
            numbers.setdefault(pk, []).append(int(rk))
    return numbers


def end_segment(data):
    archiving.flush(options.read({"TABLERO_DATA": str(data)}))


def summary_of(data):
    return archive.read(data)


LOOKS_OFTEN = {"storage.server.archive.keeper": {"_LOOK": 1.0, "_LOOK_AFTER_PROBLEM": 0.5}}


def archivers(data):
    return [
        it
        for it in psutil.process_iter(["cmdline"])
        if any(part.endswith(".archiver") for part in it.info["cmdline"] or [])
        and any(str(data) in part for part in it.info["cmdline"])
    ]


@pytest.mark.long
@pytest.mark.timeout(900)  # it restores many times: a minute where nothing else runs
def test_any_moment_is_restored_exactly_whatever_is_killed_and_however_often(used, scratch):
    folder = scratch / f"archive-{uuid4().hex[:8]}"
    arguments = ("--archive", str(folder))
    with start_server(used, *arguments, constants=LOOKS_OFTEN) as live:
        with TableServiceClient.from_connection_string(live.connection_string) as client:
            client.create_table("stock")
        wait_for(lambda: (result := summary_of(used)) and result.base_at)
        with writing(live, "a") as first:
            [process] = wait_for(lambda: archivers(used))
            process.kill()
            before = datetime.now(UTC)
            wait_for(lambda: [it for it in archivers(used) if it.pid != process.pid])
            end_segment(used)
            live.kill()
    killed = datetime.now(UTC)
    unfinished = used.with_name(f"{used.name}.2026-01-01T00-00-00Z.part")
    unfinished.mkdir()
    with start_server(used, *arguments, constants=LOOKS_OFTEN) as live:
        with writing(live, "b") as second:
            said = manage("restore", "--to", before.isoformat(), "--data", used)
        assert "Nothing has changed for the server yet" in said
        done = datetime.now(UTC)  # there are no later writes, so that the log ends before any later commit
        manage("restore", "--to", done.isoformat(), "--data", used)
        assert "A server runs on" in manage("restore", "--switch", "--data", used, status=1)
    assert not unfinished.exists()
    restored = sorted(used.parent.glob(f"{used.name}.*.restored"))
    for path, moment in zip(restored, (before, done), strict=True):
        result = rows(path)
        for writer in (*first, *second):
            writer.check(result.get(writer.name, []), moment)

    # one of them takes the place, and its server archives on a timeline of its own
    folder_switch.exchange(used, restored[0])  # and is killed; the command goes on from there
    said = manage("restore", "--switch", restored[0], "--data", used)
    kept = used.with_name(restored[0].name.removesuffix(".restored"))
    assert f"The data from before are in {kept}." in said
    assert (kept / "database").exists() and not (used / point_in_time.MARK).exists()
    with start_server(used, *arguments, constants=LOOKS_OFTEN) as live, writing(live, "c", 1) as [third]:
        later = datetime.now(UTC)
        manage("restore", "--to", later.isoformat(), "--data", used)
    uses = Catalog.read(Archive(str(folder))).uses
    assert uses[0].timeline == 1 and uses[-1].timeline > 1
    manage("restore", "--to", killed.isoformat(), "--data", used, "--replace")  # the switch had undone it
    result = rows(used)
    assert result.keys() == {it.name for it in first}
    for writer in first:
        writer.check(result[writer.name], killed)
    result = rows(max(used.parent.glob(f"{used.name}.*.restored")))
    assert result.keys() == {it.name for it in (*first, third)}
    third.check(result[third.name], later)
    for writer in first:
        writer.check(result[writer.name], before)
    assert "All of it can be read." in manage("archive", "--verify", folder, "--data", scratch / "none")


@pytest.mark.long
def test_postgresql_that_loses_its_supervisor_has_its_log_archived_and_ends(used, scratch):
    """It waits for that before it ends, and would have to be forced otherwise."""
    log = DataFolder(used).log
    with start_server(used, "--archive", str(scratch / f"archive-{uuid4().hex[:8]}")) as live:
        [process] = wait_for(lambda: archivers(used))
        before, postmaster = log.read_text("utf-8"), psutil.Process(live.postmaster())
        postmaster.parent().kill()
        wait_for(lambda: [it for it in archivers(used) if it.pid != process.pid])
        wait_for(lambda: not postmaster.is_running())
        said = log.read_text("utf-8").removeprefix(before)
    assert "received fast shutdown request" in said
    assert "received immediate shutdown request" not in said


@pytest.mark.long
def test_a_gap_is_an_alarm_and_the_next_base_backup_ends_it(used, scratch, monkeypatch):
    for name, seconds in LOOKS_OFTEN["storage.server.archive.keeper"].items():
        monkeypatch.setattr(keeper, name, seconds)
    folder = scratch / f"archive-{uuid4().hex[:8]}"
    given = {"TABLERO_ARCHIVE": str(folder), "TABLERO_ARCHIVE_BACKLOG": "32M"}
    serving = options.read({"TABLERO_DATA": str(used), **given})
    with (
        metrics.counting(),
        embedded.running(serving, purpose="serve", say=print),
        keeper.running(serving),
    ):
        first = wait_for(lambda: (summary := summary_of(used)) and summary.base_at)
        folder.rename(away := folder.with_name("away"))
        for _ in range(4):
            end_segment(used)
        gap = wait_for(lambda: archiver.read_state(used / "archive" / "state.json")["gap"])
        wait_for(lambda: any(it.problem is Problem.UNREADABLE for it in summary_of(used).problems))
        assert "archive: warning: " in manage("doctor", "--data", used)
        away.rename(folder)  # the archiver notices it without the end of a segment
        wait_for(lambda: (summary := summary_of(used).base_at) and summary > first)
        wait_for(lambda: not summary_of(used).problems)
        catalog = Catalog.read(Archive(str(folder)))
        assert Segment.parse(gap["from"]) in catalog.missing(catalog.bases[0])
        finished = catalog.bases[-1].finished_at
        # periods begin with a whole second
        wait_for(lambda: datetime.now(UTC) > finished + timedelta(seconds=1))
        end_segment(used)
        wait_for(lambda: (periods := summary_of(used).periods) and periods[-1].end >= finished)


def test_a_moment_that_the_clock_had_twice_is_refused(made, tmp_path):
    """Replayed up to a commit of the clock that was ahead, which the log has before those of the right clock."""
    folder = DataFolder(tmp_path / "data")
    (folder.database / "pg_wal").mkdir(parents=True)
    (folder.database / "pg_wal" / "00000002.history").write_text("1\t0/8000100\tbefore 2026-11-25\n")
    [plan, _] = made.catalog.plan(at(7.5))
    stopped = "LOG:  recovery stopping before commit of transaction 7, time 2026-11-25 19:40:00.5+00\n"
    for log in (stopped, ""):  # without a stop the end of the log was replayed
        folder.log.write_text(log)
        point_in_time.refuse_repeated_time(folder, made.catalog, plan, at(7.5))
    made.segments(1, 10, start=NOW - 4 * HOUR)
    for log, moment in ((stopped, "19:40:00"), ("", "19:30:00")):
        folder.log.write_text(log)
        with pytest.raises(Refusal, match=f"The clock was set back after 2026-11-25T{moment}Z") as refusal:
            point_in_time.refuse_repeated_time(folder, made.catalog, plan, at(7.5))
        assert "2026-11-25T19:30:00Z" in str(refusal.value)


@pytest.mark.long
def test_a_segment_that_is_not_its_own_or_ends_too_early_is_named(used, scratch):
    folder = scratch / f"archive-{uuid4().hex[:8]}"
    serving = options.read({"TABLERO_DATA": str(used), "TABLERO_ARCHIVE": str(folder)})
    with (
        metrics.counting(),
        embedded.running(serving, purpose="serve", say=print),
        keeper.running(serving),
    ):
        wait_for(lambda: (summary := summary_of(used)) and summary.base_at)
        for _ in range(3):
            end_segment(used)
    archived = Archive(str(folder))
    assert inspection.verify(archived, print) == []
    former, middle = sorted(Catalog.read(archived).segments)[-3:-1]
    path = folder / "wal" / f"{middle.name}.gz"
    packed, content = path.read_bytes(), bytearray(archived.read_segment(middle.name))

    def refusal():
        request = point_in_time.Request(None, str(folder))
        with pytest.raises(Refusal) as refused:
            point_in_time.restore_moment(
                options.read({"TABLERO_DATA": str(scratch / f"restored-{uuid4().hex[:8]}")}), request, print
            )
        return str(refused.value)

    content[60] ^= 1  # in the first record
    path.write_bytes(compress(bytes(content), 0))
    assert refusal() == f"{path} is damaged: the log cannot be replayed beyond it."
    path.write_bytes((folder / "wal" / f"{former.name}.gz").read_bytes())
    assert refusal() == f"{path} is not the part of the log that its name says."
    assert inspection.verify(archived, print) == [refusal()]
    path.write_bytes(packed)
    assert inspection.verify(archived, print) == []


@pytest.fixture
def refused(used):
    """Return `refused(path, moment)`, which returns the reason why an archive is not restored from."""

    def refused(path, moment=None):
        request = point_in_time.Request(moment, path and str(path))
        with pytest.raises(Refusal) as refusal:
            point_in_time.restore_moment(options.read({"TABLERO_DATA": str(used)}), request, print)
        return str(refusal.value)

    return refused


def test_only_an_archive_of_the_database_is_restored_from(refused, made, tmp_path):
    assert "has no archive. Name one" in refused(None)
    assert "is not an archive" in refused(tmp_path)
    assert "of another database" in refused(made.path)


def test_only_a_moment_in_the_archive_is_restored(refused, made):
    said = refused(made.path, at(2))
    assert "cannot be restored from" in said
    assert f"{at(2.5):%Y-%m-%dT%H:%M:%SZ} to {at(9):%Y-%m-%dT%H:%M:%SZ}" in said


def test_only_a_restored_folder_takes_the_place(used, tmp_path):
    result = options.read({"TABLERO_DATA": str(used)})
    with pytest.raises(Refusal, match="There is no restored folder beside"):
        point_in_time.switch(result, None)
    with pytest.raises(Refusal, match="is not a restored folder"):
        point_in_time.switch(result, tmp_path)


def test_the_command_asks_for_one_thing_to_do(made, tmp_path):
    folder = ("--data", tmp_path / "data")
    assert "say to which time with --to" in manage("restore", made.path, *folder, status=1)
    both = ("--to", "latest", "--switch")
    assert "Give --to or --switch" in manage("restore", *both, *folder, status=1)


def test_a_server_does_not_archive_into_the_archive_of_another(used, made):
    result = options.read({"TABLERO_DATA": str(used), "TABLERO_ARCHIVE": str(made.path)})
    serving = embedded.running(result, purpose="serve", say=print)
    with pytest.raises(Refusal, match="of another database"), serving:
        pass


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"DATABASE_URL": "postgresql://elsewhere/it"}, "for the embedded database"),
        ({"TABLERO_ARCHIVE": "/data/archive"}, "is in the data folder"),
    ],
)
def test_an_archive_that_could_never_succeed_is_refused(given, reason):
    values = {"TABLERO_DATA": "/data", "TABLERO_ARCHIVE": "/archive", **given}
    with pytest.raises(Refusal, match=reason):
        archiving.check(options.read(values))
