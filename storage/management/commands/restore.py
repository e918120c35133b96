"""The command `restore`: recreate a server from a backup, or return its database to a point in time."""

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from storage.management.command import TableroCommand, add_common_arguments
from storage.server.archive import moments, point_in_time
from storage.server.archive.archive_store import Archive
from storage.server.backups import restore, sealing
from storage.server.backups.description import SecretIn
from storage.server.backups.stores import is_url
from storage.server.data_folder import DataFolder


class Command(TableroCommand):
    help = (
        "Restore a backup into a data folder that has no database. With DATABASE_URL, restore a dump into that"
        " database, which must be empty. With --to TIME, restore an archive to that time, into a new folder beside the"
        " data folder; --switch then puts it into the place of the data folder."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_common_arguments(parser, "the folder to restore into")
        parser.add_argument(
            "backup",
            metavar="BACKUP",
            nargs="?",
            help="a path or URL of a backup, or of a folder or bucket of which to take the last backup; with --to an"
            " archive (that of the data folder); with --switch a restored folder (the newest)",
        )
        parser.add_argument(
            "--to",
            metavar="TIME",
            help="in UTC as 2026-11-26T08:30:00Z, or '10 minutes ago', or latest: see the command archive",
        )
        parser.add_argument(
            "--switch",
            action="store_true",
            help="put a restored folder into the place of the data folder, which is kept beside it",
        )
        parser.add_argument(
            "--passphrase-file",
            metavar="FILE",
            type=Path,
            help="opens a sealed backup with the first line of a file",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace the database in the data folder, which is kept beside it under a name with the time",
        )

        parser.add_argument(
            "--secret-only",
            action="store_true",
            help="bring back only the secret, into a data folder that has lost it",
        )

    def handle(
        self,
        *args: Any,
        backup: str | None,
        to: str | None,
        switch: bool,
        passphrase_file: Path | None,
        replace: bool,
        secret_only: bool,
        **options: Any,
    ) -> None:
        location = backup and (backup.rstrip("/") if is_url(backup) else str(Path(backup).absolute()))
        passphrase = sealing.read_passphrase(passphrase_file) if passphrase_file else None
        if (to is not None or switch) and settings.OPTIONS.database_url:
            raise CommandError("An external database is restored to a time with the tools of its PostgreSQL.")
        if secret_only and (to is not None or switch or replace):
            raise CommandError(
                "--secret-only brings back nothing else: leave out --to, --switch and --replace."
            )
        if to is not None and switch:
            raise CommandError("Give --to or --switch; --to with --replace does both.")
        if switch:
            self._show(point_in_time.switch(settings.OPTIONS, None if location is None else Path(location)))
        elif to is not None:
            moment = moments.parse(to, datetime.now(UTC))
            request = point_in_time.Request(moment, location, passphrase_file, replace)
            self._show(point_in_time.restore_moment(settings.OPTIONS, request, self.stderr.write))
        elif backup is None:
            raise CommandError("Name a backup, or a time with --to; see: restore --help.")
        elif secret_only:
            folder = DataFolder(settings.OPTIONS.data)
            restore.restore_secret(settings.OPTIONS, restore.find(backup), passphrase)
            self.stdout.write(f"Start the server: tablero serve {folder.option}")
        else:
            self._restore_backup(backup, passphrase, replaces=replace)

    def _show(self, restored: point_in_time.Restored) -> None:
        if restored.counts:
            self.stdout.write(f"Restored into {restored.path}: {_count(restored.counts)}.")
        if restored.notes:
            self.stdout.write(restored.notes)
        if restored.kept is not None:
            self.stdout.write(
                f"The data from before are in {restored.kept}. Delete them when you are satisfied."
            )
        folder = DataFolder(settings.OPTIONS.data)
        if restored.path == folder.path:
            self.stdout.write(f"Start the server: tablero serve {folder.option}")
        else:
            self.stdout.write(
                "Nothing has changed for the server yet. To use the restored folder, stop the server and run:"
                f" tablero restore --switch {folder.option}"
            )

    def _restore_backup(self, location: str, passphrase: bytes | None, *, replaces: bool) -> None:
        if Archive(location).exists():
            raise CommandError(f"{location} is an archive; say to which time with --to TIME, or --to latest.")
        backup = restore.find(location)
        restored = restore.restore(
            settings.OPTIONS, backup, self.stderr.write, passphrase=passphrase, replaces=replaces
        )
        self.stdout.write(f"Restored {backup.location}: {_count(restored.counts)}.")
        if restored.kept is not None:
            self.stdout.write(f"The data from before are in {restored.kept}.")
        if backup.secret is SecretIn.ABSENT:
            self.stdout.write("The secret is not in the backup: start the server with its TABLERO_SECRET.")
        here = "" if settings.OPTIONS.database_url else f" {DataFolder(settings.OPTIONS.data).option}"
        self.stdout.write(f"Start the server: tablero serve{here}")


def _count(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {number:,}" for name, number in counts.items())
