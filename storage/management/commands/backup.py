"""The command `backup`: back up the whole server, list backups, or verify that one can be restored."""

import argparse
import os
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from storage.domain.values.numbers import counted, were
from storage.management.command import TableroCommand, add_common_arguments, whole_number
from storage.server import running_servers
from storage.server.archive import drill as drills
from storage.server.backups import backup, description, restore, sealing, stores


class Command(TableroCommand):
    help = (
        "Back up the database and the secret into a folder, a bucket of S3 or a container of Azure Blob Storage, while"
        " the server runs or not. With DATABASE_URL, the backup is a dump of that database."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_common_arguments(parser)
        parser.add_argument(
            "location",
            metavar="DIR|URL",
            nargs="?",
            help="where the backups are: a folder, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX",
        )
        parser.add_argument(
            "--passphrase-file",
            metavar="FILE",
            type=Path,
            help="seal the backup, or open a sealed one, with the first line of a file",
        )
        parser.add_argument(
            "--incremental",
            action="store_true",
            help="only what has changed since the last backup; needs summarize_wal = on",
        )
        parser.add_argument(
            "--full-every",
            metavar="N",
            type=whole_number(1),
            default=1,
            help="incremental, unless N - 1 have followed the last full one, or it is not possible",
        )
        parser.add_argument(
            "--keep",
            metavar="N",
            type=whole_number(1),
            help="delete all but the newest N full backups and the incremental ones that continue them",
        )
        instead = parser.add_mutually_exclusive_group()
        instead.add_argument("--list", action="store_true", help="no new backup: list those that are there")
        instead.add_argument(
            "--test",
            action="store_true",
            help="no new backup: restore one, or the last backup there, into a scratch folder and compare",
        )
        instead.add_argument(
            "--unseal",
            metavar="DIR",
            type=Path,
            help="no new backup: copy one, or the last backup there, into a folder as plain files",
        )
        instead.add_argument(
            "--drill",
            action="store_true",
            help="no new backup: restore the last one and a moment of the archive, as the server does by schedule",
        )

    def handle(
        self,
        *args: Any,
        location: str | None,
        passphrase_file: Path | None,
        list: bool,  # noqa: A002 (the name of the option)
        test: bool,
        unseal: Path | None,
        drill: bool,
        **arguments: Any,
    ) -> None:
        passphrase = sealing.read_passphrase(passphrase_file) if passphrase_file else None
        if drill:
            running_servers.refuse_ambiguous(settings.OPTIONS, os.environ)
            drills.perform(settings.OPTIONS, self.stderr.write)
            self.stdout.write("The drill passed.")
        elif location is None:
            raise CommandError("Name a folder or a bucket; see: backup --help.")
        elif list:
            self._list(location)
        elif test:
            self._test(location, passphrase)
        elif unseal:
            self._unseal(location, unseal.absolute(), passphrase)
        else:
            self._back_up(location, passphrase, **arguments)

    def _back_up(
        self,
        location: str,
        passphrase: bytes | None,
        *,
        incremental: bool,
        full_every: int,
        keep: int | None,
        **_: Any,
    ) -> None:
        running_servers.refuse_ambiguous(settings.OPTIONS, os.environ)
        started = time.monotonic()
        request = backup.BackupRequest(location, passphrase, incremental, keep, full_every)
        made = backup.back_up(settings.OPTIONS, request, self.stderr.write)
        self.stdout.write(backup.describe(made, time.monotonic() - started))

    def _list(self, location: str) -> None:
        listed = description.backups(stores.open_store(location))
        if not listed:
            self.stderr.write(f"There is no backup in {location}.")
        for it in listed:
            sealed = "sealed" if it.sealing else ""
            size = backup.size_of(it.size)
            self.stdout.write(f"{it.name}  {it.kind:11}  {size:>12}  {it.version:10}  {sealed}".rstrip())

    def _unseal(self, location: str, folder: Path, passphrase: bytes | None) -> None:
        for it in restore.unseal(restore.find(location), folder, self.stderr.write, passphrase=passphrase):
            self.stdout.write(f"Plain files: {it.location}")

    def _test(self, location: str, passphrase: bytes | None) -> None:
        started = time.monotonic()
        backup = restore.find(location).opened(passphrase)
        differences = restore.drill(settings.OPTIONS, backup, self.stderr.write, passphrase=passphrase)
        if differences:
            raise CommandError("\n".join([f"The backup {backup.location} failed the test:", *differences]))
        relations = backup.relations.values()
        sampled = sum(len(it.sample) for it in relations)
        compared = sum(it.rows is not None for it in relations)
        content = (
            f"{counted(compared, 'relation')} and the content of {counted(sampled, 'entity', 'entities')}"
        )
        text = f"It opens; the counts of {content} are as they were."
        if changed := len(relations) - compared:
            text += f" {counted(changed, 'relation')} {were(changed)} written to during the backup, and not counted."
        self.stdout.write(f"{backup.location}: passed in {time.monotonic() - started:.1f} seconds. {text}")
