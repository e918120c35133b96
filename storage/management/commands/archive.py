"""The command `archive`: list what can be restored from an archive, and verify that it is readable."""

import argparse
import json as json_format
import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from storage.backups import archive
from storage.backups.archive import ArchiveSummary
from storage.management.command import TableroCommand, add_common_arguments
from storage.server import running_servers
from storage.server.archive import base_backups, inspection
from storage.server.archive.archive_store import Archive
from storage.server.archive.archiving import Config
from storage.server.backups.stores import is_url
from storage.server.data_folder import DataFolder
from storage.server.refusal import Refusal


class Command(TableroCommand):
    help = "Show to which moments the embedded database can be restored; the exit status is 1 if something is wrong."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_common_arguments(parser, "folder of the database")
        parser.add_argument(
            "location", metavar="DIR|URL", nargs="?", help="the archive (that of the data folder)"
        )
        parser.add_argument("--json", action="store_true", help="print a JSON object")
        parser.add_argument(
            "--verify",
            action="store_true",
            help="read every base backup and all of the log, which takes a while",
        )
        parser.add_argument(
            "--base", action="store_true", help="make a base backup, and delete what is no longer kept"
        )
        parser.add_argument(
            "--unseal", metavar="DIR", type=Path, help="copy the archive into a folder, as plain files"
        )
        parser.add_argument(
            "--passphrase-file", metavar="FILE", type=Path, help="opens a sealed archive (that of the server)"
        )

    def handle(
        self,
        *args: Any,
        location: str | None,
        json: bool,
        verify: bool,
        base: bool,
        unseal: Path | None,
        passphrase_file: Path | None,
        **options: Any,
    ) -> None:
        if base or location is None:
            running_servers.refuse_ambiguous(settings.OPTIONS, os.environ)
        folder = DataFolder(settings.OPTIONS.data)
        data: DataFolder | None = folder
        config = Config.read(folder)
        if location is not None:
            location = location if is_url(location) else str(Path(location).absolute())
            if config is None or config.archive != location:
                config, data = Config(location, 0), None
        if config is None:
            raise Refusal(
                f"The server of {folder.path} has no archive; start it with --archive DIR, or name an archive here."
            )
        store = config.open(passphrase_file)
        if base:
            self._make_base(store)
            return
        if unseal is not None:
            inspection.unseal(store, unseal.absolute(), self.stderr.write)
            self.stdout.write(f"Plain files: {unseal}")
            return
        known = None if data is None else settings.OPTIONS.archive
        summary, _ = inspection.inspect(
            data, store, known.every if known else None, known.size if known else None
        )
        damaged = inspection.verify(store, self.stderr.write) if verify else []
        if json:
            self.stdout.write(_in_json(summary, damaged))
        else:
            self._show(summary, is_running=data is not None and data.server() is not None)
            for sentence in damaged:
                self.stdout.write(f"Damaged: {sentence}")
            if verify and not damaged:
                self.stdout.write("All of it can be read.")
        if damaged or summary.problems:
            raise SystemExit(1)

    def _make_base(self, store: Archive) -> None:
        options = settings.OPTIONS
        remembered = Config.read(DataFolder(options.data))
        if remembered is None or remembered.archive != store.location:
            raise CommandError(f"The server of {options.data} does not use the archive {store.location}.")
        made = base_backups.make(options, store, self.stderr.write)
        self.stderr.write(f"Made the base backup {made.name}.")
        if options.archive is not None:
            base_backups.prune(store, options.archive.keep, options.archive.size, self.stderr.write)

    def _show(self, summary: ArchiveSummary, *, is_running: bool) -> None:
        self.stdout.write(f"Archive:         {summary.folder}")
        for period in summary.periods:
            self.stdout.write(f"Can be restored: {_text(period.start)} to {_text(period.end)}")
        if summary.periods and is_running:
            self.stdout.write(
                "                 and up to now: restore lets the running server archive what is new"
            )
        if summary.base_at is not None:
            self.stdout.write(f"Last base:       {_text(summary.base_at)}")
        self.stdout.write(f"Size:            {summary.size / 2**20:,.1f} MiB")
        for problem in summary.problems:
            self.stdout.write(f"Problem:         {archive.describe(problem)}")


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _in_json(found: ArchiveSummary, damaged: list[str]) -> str:
    content = {**asdict(found), "damaged": damaged}
    content["problems"] = [{"problem": it.problem, "text": archive.describe(it)} for it in found.problems]
    content["periods"] = [it._asdict() for it in found.periods]
    return json_format.dumps(content, default=datetime.isoformat)
