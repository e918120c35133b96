"""Maintenance of a server's archive: base backups, retention and a summary."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import psycopg

from storage.backups import archive
from storage.backups.archive import ArchiveSummary, Problem
from storage.server.archive import archive_store, archiving, inspection
from storage.server.backups import schedule
from storage.server.backups.stores import is_url
from storage.server.data_folder import DataFolder
from storage.server.options import ArchiveOptions, Options
from storage.server.refusal import Refusal

logger = logging.getLogger(__name__)

_LOOK: Final = 10.0  # seconds
_LOOK_AFTER_PROBLEM: Final = 2.0
_SLOWER: Final = 6  # in a bucket, whose requests cost money
_PATIENCE: Final = 20.0  # seconds with an archive on a network that hangs
_PAUSE: Final = timedelta(minutes=15).total_seconds()  # after a base backup that failed


@contextmanager
def running(options: Options) -> Iterator[None]:
    """Maintain the archive during the block, and abort a running base backup at its end."""
    if options.archive is None:
        yield
        return
    is_stopping = threading.Event()
    keeper = _Keeper(options, options.archive, is_stopping)
    with schedule.in_background("archive", keeper.run, is_stopping, patience=_PATIENCE):
        keeper.has_begun.wait(_PATIENCE)  # writes of clients from now on are on the timeline that it records
        yield


class _Keeper:
    def __init__(self, options: Options, archive: ArchiveOptions, is_stopping: threading.Event) -> None:
        self._options = options
        self._archive = archive
        self._folder = DataFolder(options.data)
        self._store = archive_store.Archive(str(archive.folder), archive.passphrase_file)
        self._slower = _SLOWER if is_url(str(archive.folder)) else 1
        self._is_stopping = is_stopping
        self._next_base = 0.0
        self._known: set[Problem] = set()
        self.has_begun = threading.Event()

    def run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                archiving.begin(self._options, self._store)
                self.has_begun.set()
                self._look()
            except (OSError, Refusal, psycopg.Error) as error:
                logger.warning("The archive cannot be looked after: %s", error)
                self.has_begun.set()
            self._is_stopping.wait(self._slower * (_LOOK_AFTER_PROBLEM if self._known else _LOOK))

    def _look(self) -> None:
        summary, catalog = inspection.inspect(
            self._folder, self._store, self._archive.every, self._archive.size
        )
        self._log(summary)
        summary.write(self._folder.archiving)
        if catalog is None or any(it.problem is Problem.FAILING for it in summary.problems):
            return
        is_due = inspection.is_base_due(self._folder, catalog, self._archive.every, self._archive.size)
        if is_due and time.monotonic() >= self._next_base and schedule.ONE_AT_A_TIME.acquire(blocking=False):
            try:
                self._make_base()
            finally:
                schedule.ONE_AT_A_TIME.release()

    def _make_base(self) -> None:
        arguments = ["archive", "--base", "--data", str(self._options.data)]
        if self._archive.passphrase_file is not None:
            arguments += ["--passphrase-file", str(self._archive.passphrase_file)]
        reason = schedule.run_command(arguments, self._is_stopping)
        if reason and not self._is_stopping.is_set():
            self._next_base = time.monotonic() + min(_PAUSE, self._archive.every.total_seconds())
            logger.error("The base backup of the archive failed and is tried again later: %s", reason)

    def _log(self, found: ArchiveSummary) -> None:
        for it in found.problems:
            if it.problem not in self._known and it.problem is not Problem.NO_BASE:
                logger.error("The archive %s: %s", self._archive.folder, archive.describe(it))
        self._known = {it.problem for it in found.problems}
