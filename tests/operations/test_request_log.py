"""Files of the request log."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.request_log import LogEntry
from storage.domain.service.service_properties import Logging, ServiceProperties
from storage.operations.accounts import accounts
from storage.runtime import request_log
from storage.runtime.request_log import LogFiles

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def write(files, *urls, started=NOON, account="people"):
    for url in urls:
        files.add(ObservedRequest(0.0, account=account), LogEntry(url, "", ""), started)
    files.write()


def content(path):
    """The URLs of its lines."""
    return [line.split(";")[11].strip('"') for line in path.read_text().splitlines()]


def found(root):
    return {str(path.relative_to(root)): content(path) for path in root.rglob("*.log")}


def test_appends_to_the_file_of_the_hour(tmp_path):
    files = LogFiles(tmp_path)
    write(files, "a", "b")
    write(files, "c", started=NOON + timedelta(minutes=59))
    write(files, "d", started=NOON + timedelta(hours=1))
    write(files, "e", account="others")

    assert found(tmp_path) == {
        "people/table/2026/11/21/1200/000000.log": ["a", "b", "c"],
        "people/table/2026/11/21/1300/000000.log": ["d"],
        "others/table/2026/11/21/1200/000000.log": ["e"],
    }


def test_every_process_has_files_of_its_own(tmp_path):
    one, two = LogFiles(tmp_path), LogFiles(tmp_path)
    write(one, "a")
    write(two, "b")
    write(one, "c")

    assert found(tmp_path) == {
        "people/table/2026/11/21/1200/000000.log": ["a", "c"],
        "people/table/2026/11/21/1200/000001.log": ["b"],
    }


def test_begins_a_new_file_when_one_is_full_or_gone(tmp_path, monkeypatch):
    files = LogFiles(tmp_path)
    write(files, "a")
    monkeypatch.setattr(request_log, "_SIZE_LIMIT", 10)
    write(files, "b")
    for path in tmp_path.rglob("*.log"):
        assert path.stat().st_mode & 0o077 == 0  # nobody else may read it
        path.unlink()
    write(files, "c")

    assert found(tmp_path) == {"people/table/2026/11/21/1200/000000.log": ["c"]}


@pytest.mark.django_db
def test_drops_days_that_the_account_does_not_want_to_keep(tmp_path):
    forgetful, keeping = accounts.add("forgetful"), accounts.add("keeping")
    forgetful.service_properties = asdict(ServiceProperties(logging=Logging(retention=2)))
    forgetful.save()
    files = LogFiles(tmp_path)
    for account in (forgetful, keeping):
        for days in (0, 1, 2, 3, 40):
            write(files, "a", started=NOON - days * DAY, account=account.name)

    request_log.tidy(tmp_path, NOON)
    request_log.tidy(tmp_path / "nowhere", NOON)

    days = sorted(path.split("table/")[1][:10] for path in found(tmp_path) if path.startswith("forgetful"))
    assert days == ["2026/11/19", "2026/11/20", "2026/11/21"]
    assert not (tmp_path / "forgetful/table/2026/10").exists()
    assert len(found(tmp_path / "keeping")) == 5
