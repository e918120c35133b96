"""The command `restore`: make a server of a backup again."""

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings

from storage.management.command import TableroCommand
from storage.server.backups import restore, sealing
from storage.server.backups.backup_folder import SecretIn


class Command(TableroCommand):
    help = (
        "Restore a backup into a data folder that has no database. With DATABASE_URL, restore a dump into that"
        " database, which must be empty."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", metavar="DIR", help="the folder to restore into (TABLERO_DATA)")
        parser.add_argument(
            "backup",
            metavar="BACKUP",
            type=Path,
            help="a backup, or a folder of which to take the last backup",
        )
        parser.add_argument(
            "--passphrase-file",
            metavar="FILE",
            type=Path,
            help="opens a sealed secret with the first line of a file",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace the database in the data folder, which is kept beside it under a name with the time",
        )

    def handle(
        self, *args: Any, backup: Path, passphrase_file: Path | None, replace: bool, **options: Any
    ) -> None:
        found = restore.find(backup.absolute())
        passphrase = sealing.read_passphrase(passphrase_file) if passphrase_file else None
        restored = restore.restore(
            settings.OPTIONS, found, self.stderr.write, passphrase=passphrase, replaces=replace
        )
        counts = ", ".join(f"{name}: {number:,}" for name, number in restored.counts.items())
        self.stdout.write(f"Restored {found.path}: {counts}.")
        if restored.kept is not None:
            self.stdout.write(f"The data from before are in {restored.kept}.")
        if found.secret is SecretIn.ABSENT:
            self.stdout.write("The secret is not in the backup: start the server with its TABLERO_SECRET.")
        here = "" if settings.OPTIONS.database_url else f" --data {settings.OPTIONS.data}"
        self.stdout.write(f"Start the server: tablero serve{here}")
