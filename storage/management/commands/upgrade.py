"""The command `upgrade`: migrate the database to this version without starting a server."""

import argparse
from typing import Any

from django.conf import settings

from storage.health import release
from storage.management.command import DatabaseCommand
from storage.server import migration, options


class Command(DatabaseCommand):
    help = (
        "Bring the database to this version, as the start of the server does, after a backup. Older versions cannot use"
        " it afterwards. Each option can also be set by the environment variable in brackets."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        options.add_arguments(parser, "upgrade")

    def prepare(self) -> None:
        migration.upgrade(settings.OPTIONS, self.stderr.write)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"The database is ready for Tablero {release.version()}.")
