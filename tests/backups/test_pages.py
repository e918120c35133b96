"""The backups of the server as admins see them, and the warnings on the home page."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from storage.backups import archive, last_backup
from storage.backups.archive import ArchiveSummary, Found, Period, Problem
from storage.backups.last_backup import BackupFailure, Kind, LastBackup
from storage.models import Table
from storage.server.options import BackupSchedule
from storage.tables import tables

PAGE = "/ui/backups/"
HOUR = timedelta(hours=1)
OVERDUE = "Backups are overdue"
HINT = "This server has no backup."


@pytest.fixture(autouse=True)
def data(settings, tmp_path):
    settings.OPTIONS = replace(settings.OPTIONS, data=tmp_path, database_url="", backups=None)
    return tmp_path


@pytest.fixture
def scheduled(settings, tmp_path):
    schedule = BackupSchedule(tmp_path / "backups", timedelta(days=1), 14, None)
    settings.OPTIONS = replace(settings.OPTIONS, backups=schedule)


def text(client, path=PAGE, **headers):
    return " ".join(strip_tags(client.get(path, headers=headers).content.decode()).split())


def made(data, ago, **facts):
    last_backup.record(data, LastBackup(timezone.now() - ago, "/backups/a", **facts))


def failed(data, ago):
    last_backup.record_failure(data, BackupFailure(timezone.now() - ago, "The disk is full."))


def test_no_backup_and_no_schedule(visit):
    page = text(visit("ada"))
    assert "no backup yet" in page and "tablero backup backups" in page
    assert "Start the server with --backup-to DIR to back up by schedule." in page
    assert OVERDUE not in page and HINT not in page


def test_the_last_good_backup_with_its_schedule(visit, data, scheduled):
    made(data, 2 * HOUR, size=3 << 20, kind=Kind.INCREMENTAL)
    page = text(visit("ada"))
    assert "When2 hours ago" in page and "Path/backups/a" in page
    assert "Size3.0 MB" in page and "Typeincremental" in page
    assert f"Folder{data}/backups" in page and "Backups kept14" in page
    assert "Next backup in" in page
    assert OVERDUE not in page


def test_a_failure_until_a_later_backup_succeeds(visit, data, scheduled):
    made(data, 3 * HOUR)
    failed(data, HOUR)
    page = text(visit("ada"))
    assert "ReasonThe disk is full." in page
    assert "resolved" not in page and OVERDUE not in page
    made(data, timedelta(0))
    assert "Last failure resolved" in text(visit("ada"))


@pytest.mark.parametrize("path", ["/ui/", PAGE])
def test_admins_are_warned_when_backups_are_overdue(visit, data, scheduled, path):
    made(data, timedelta(hours=47))
    assert OVERDUE not in text(visit("ada"), path)
    made(data, timedelta(hours=49))
    assert f"{OVERDUE}The last good backup is older than twice" in text(visit("ada"), path)
    (data / last_backup.NAME).unlink()
    assert OVERDUE not in text(visit("ada"), path)
    failed(data, HOUR)
    assert f"{OVERDUE}The first scheduled backup failed." in text(visit("ada"), path)
    assert OVERDUE not in text(visit("alice"), "/ui/")


def test_a_hint_for_data_without_backups(visit, data, account, settings):
    table = tables.create(account, "people")
    assert HINT not in text(visit("ada"), "/ui/")
    Table.objects.filter(pk=table.pk).update(created_at=timezone.now() - timedelta(hours=25))
    assert f"{HINT} Run tablero backup DIR" in text(visit("ada"), "/ui/")
    assert HINT not in text(visit("alice"), "/ui/")
    settings.OPTIONS = replace(settings.OPTIONS, database_url="postgresql://elsewhere/it")
    assert HINT not in text(visit("ada"), "/ui/")
    settings.OPTIONS = replace(settings.OPTIONS, database_url="")
    made(data, HOUR)
    assert HINT not in text(visit("ada"), "/ui/")


def test_drills_and_the_warning_about_them(visit, data, settings):
    warning = "Restore drill failed"
    settings.OPTIONS = replace(settings.OPTIONS, drill_every=timedelta(days=7))
    assert "Restore drill" not in text(visit("ada"))
    last_backup.record_drill(data, timezone.now() - timedelta(days=15), "")
    assert "Restore drill overdue" in text(visit("ada"))
    assert warning in text(visit("ada"), "/ui/") and warning not in text(visit("alice"), "/ui/")
    last_backup.record_drill(data, timezone.now() - HOUR, "")
    assert "Restore drill passed" in text(visit("ada"))
    assert warning not in text(visit("ada"), "/ui/")
    last_backup.record_drill(data, timezone.now(), "There is no room.")
    assert "Restore drill failed" in text(visit("ada")) and "ReasonThere is no room." in text(visit("ada"))
    assert warning in text(visit("ada"), "/ui/")


def archived(data, *problems, ago=timedelta(0), **facts):
    (data / "archive").mkdir(exist_ok=True)
    (data / "archive" / archive.CONFIG).touch()
    result = ArchiveSummary(timezone.now() - ago, "/archive", problems=problems, **facts)
    result.write(data / "archive")


def test_the_page_shows_the_restorable_periods(visit, data):
    assert "Start with --archive DIR to allow point-in-time restore." in text(visit("ada"))
    end = timezone.now()
    archived(data, periods=(Period(end - HOUR, end),), base_at=end - HOUR, size=5 << 20)
    page = text(visit("ada"))
    assert f"Can be restored {end - HOUR:%Y-%m-%d %H:%M:%S} – {end:%Y-%m-%d %H:%M:%S} UTC" in page
    assert "Folder/archive" in page and "Size5.0 MB" in page and "Last base backup1 hour ago" in page
    assert "Problem" not in page


def test_admins_are_warned_when_the_archive_fails(visit, data):
    alarm = "The archive needs attention"
    archived(data, Found(Problem.NO_BASE))
    assert alarm not in text(visit("ada"), "/ui/")
    assert "Problem There is no base backup yet." in text(visit("ada"))
    archived(data, Found(Problem.FAILING, "The disk is full."))
    assert alarm in text(visit("ada"), "/ui/") and alarm not in text(visit("alice"), "/ui/")
    assert "up to a limit. The disk is full." in text(visit("ada"))
    archived(data, ago=timedelta(minutes=6))
    assert "The server has not looked at the archive" in text(visit("ada"))
    assert "存档需要处理" in text(visit("ada"), "/ui/", **{"Accept-Language": "zh-hans"})


def test_all_texts_are_translated(visit, data, scheduled, account):
    table = tables.create(account, "people")
    Table.objects.filter(pk=table.pk).update(created_at=timezone.now() - timedelta(hours=25))
    chinese = {"Accept-Language": "zh-hans"}
    failed(data, HOUR)
    assert "首次计划备份失败。" in text(visit("ada"), **chinese)
    made(data, timedelta(days=3), size=1)
    page = text(visit("ada"), **chinese)
    assert "备份已逾期上次成功的备份已超过计划间隔的两倍。" in page
    assert f'<a href="{PAGE}">显示备份</a>' in visit("ada").get("/ui/", headers=chinese).content.decode()
    assert "类型完整" in page and "下次备份 已到时间" in page and "已解决" not in page


def test_a_hint_is_translated(visit, data, account):
    table = tables.create(account, "people")
    Table.objects.filter(pk=table.pk).update(created_at=timezone.now() - timedelta(hours=25))
    page = text(visit("ada"), **{"Accept-Language": "tr"})
    assert "Bu sunucunun yedeği yok. tablero backup DIR komutunu çalıştırın" in page
    assert "Zamanlanmış yedekleme için sunucuyu" in page
