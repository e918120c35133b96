"""The command `upgrade`: bring the database to this version without starting a server."""

from typing import Any

from storage.management.command import DatabaseCommand
from storage.operations.health import release
from storage.server import migration


class Command(DatabaseCommand):
    help = (
        "Bring the database to this version, as the start of the server does. Older versions cannot use it afterwards;"
        " back it up first."
    )

    def prepare(self) -> None:
        migration.upgrade(self.stderr.write)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"The database is ready for Tablero {release.version()}.")
