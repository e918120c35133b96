"""The base classes of the commands."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from storage.models import Table
from storage.operations.accounts import accounts
from storage.operations.health import release
from storage.operations.tables import tables
from storage.server import migration


def find_table(account: str, name: str) -> Table:
    """Return a table; raises CommandError without such an account, ResourceNotFound without such a table."""
    found = accounts.by_name(account)
    if found is None:
        raise CommandError(f"The account {account} does not exist.")
    return tables.get(found.pk, name)


class TableroCommand(BaseCommand):
    """A command whose help has only options of Tablero."""

    requires_system_checks: list[str] = []
    suppressed_base_arguments = {
        "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color",
        "--skip-checks",
    }  # fmt: skip

    def get_version(self) -> str:
        return release.version()


class DatabaseCommand(TableroCommand):
    """A command that uses the database."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", metavar="DIR", help="folder of the database and the secret (TABLERO_DATA)"
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.prepare()
        return super().execute(*args, **options)

    def prepare(self) -> None:
        """Refuse a database of another version."""
        migration.check()
