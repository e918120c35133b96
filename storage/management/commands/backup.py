"""The command `backup`: back up the whole server, or see that a backup can be restored."""

import argparse
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from storage.management.command import TableroCommand
from storage.server.backups import backup, restore, sealing


class Command(TableroCommand):
    help = (
        "Back up the database and the secret into a new folder below DIR, while the server runs or not. With"
        " DATABASE_URL, the backup is a dump of that database."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", metavar="DIR", help="folder of the database and the secret (TABLERO_DATA)"
        )
        parser.add_argument("folder", metavar="DIR", type=Path, help="the folder of the backups")
        parser.add_argument(
            "--passphrase-file",
            metavar="FILE",
            type=Path,
            help="seal the secret with the first line of a file",
        )
        parser.add_argument(
            "--incremental",
            action="store_true",
            help="only what has changed since the last backup; needs summarize_wal = on",
        )
        parser.add_argument(
            "--keep", metavar="N", type=_positive, help="delete all but the newest N and what these need"
        )
        parser.add_argument(
            "--test",
            action="store_true",
            help="no new backup: restore DIR, or the last backup in it, into a scratch folder and compare",
        )

    def handle(self, *args: Any, folder: Path, test: bool, **arguments: Any) -> None:
        if test:
            self._test(folder.absolute())
        else:
            self._back_up(folder.absolute(), **arguments)

    def _back_up(
        self,
        folder: Path,
        *,
        passphrase_file: Path | None,
        incremental: bool,
        keep: int | None,
        **_: Any,
    ) -> None:
        started = time.monotonic()
        passphrase = sealing.read_passphrase(passphrase_file) if passphrase_file else None
        request = backup.BackupRequest(folder, passphrase, incremental, keep)
        made = backup.back_up(settings.OPTIONS, request, self.stderr.write)
        self.stdout.write(backup.describe(made, time.monotonic() - started))

    def _test(self, folder: Path) -> None:
        started = time.monotonic()
        found = restore.find(folder)
        differences = restore.drill(settings.OPTIONS, found, self.stderr.write)
        if differences:
            raise CommandError("\n".join([f"The backup {found.path} failed the test:", *differences]))
        relations = found.relations.values()
        sampled = sum(len(it.sample) for it in relations)
        counted = sum(it.rows is not None for it in relations)
        text = f"It opens; the counts of {counted} relations and the content of {sampled} entities are as they were."
        if counted < len(relations):
            text += f" {len(relations) - counted} were written to during the backup and are not counted."
        self.stdout.write(f"{found.path}: passed in {time.monotonic() - started:.1f} seconds. {text}")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a number from 1")
    return int(text)
