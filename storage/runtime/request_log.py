"""The request logs: text files by account and hour."""

import os
import shutil
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from django.conf import settings

from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.request_log import LogEntry, format_lines
from storage.models import Account
from storage.operations.accounts import service_properties

_SIZE_LIMIT: Final = 128 * 1024 * 1024  # bytes, after which a new file is begun

_Hour = tuple[str, datetime]


def folder() -> Path:
    """Return the folder of all logs; every server has its own."""
    return Path(settings.OPTIONS.data) / "logs"


class LogFiles:
    """The log files of one process; processes take different numbers within an hour."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines: defaultdict[_Hour, list[str]] = defaultdict(list)
        self._files: dict[_Hour, Path] = {}

    def add(self, observed: ObservedRequest, entry: LogEntry, started: datetime) -> None:
        hour = started.replace(minute=0, second=0, microsecond=0)
        self._lines[observed.account, hour] += format_lines(observed, entry, started)

    def write(self) -> None:
        for hour, found in self._lines.items():
            with self._file(hour).open("a", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in found))
        self.give_up()

    def give_up(self) -> None:
        self._lines.clear()

    def forget(self, now: datetime) -> None:
        """Forget the files of past hours."""
        for hour in [hour for hour in self._files if hour[1] + timedelta(hours=2) < now]:
            del self._files[hour]

    def _file(self, hour: _Hour) -> Path:
        known = self._files.get(hour)
        if known is None or not known.exists() or known.stat().st_size > _SIZE_LIMIT:
            known = self._files[hour] = self._new_file(hour)
        return known

    def _new_file(self, hour: _Hour) -> Path:
        account, moment = hour
        parent = self._root / account / "table" / moment.strftime("%Y/%m/%d/%H00")
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = 0
        while True:
            path = parent / f"{number:06}.log"
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            except FileExistsError:
                number += 1
            else:
                return path


def tidy(root: Path, now: datetime) -> None:
    """Delete logs older than the retention of their account."""
    if not root.is_dir():
        return
    for account in Account.objects.all():
        retention = service_properties.for_account(account).logging.retention
        if retention is not None:
            _drop_days(root / account.name / "table", now - timedelta(days=retention))


def _drop_days(root: Path, before: datetime) -> None:
    for day in root.glob("[0-9]*/[0-9]*/[0-9]*"):
        if "/".join(day.relative_to(root).parts) < before.strftime("%Y/%m/%d"):
            shutil.rmtree(day, ignore_errors=True)
            for parent in (day.parent, day.parent.parent):
                try:
                    parent.rmdir()
                except OSError:
                    break  # not empty yet
