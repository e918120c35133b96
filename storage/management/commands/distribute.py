"""The command `distribute`: spread a table over the nodes of a Citus cluster."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from storage.domain.errors import StorageError
from storage.models import Account
from storage.operations import distribution, tables
from storage.operations.accounts import AccountError
from storage.operations.activity import command_actor
from storage.server import migration


class Command(BaseCommand):
    help = "Spread a table over the nodes of a Citus cluster, also while the server runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", metavar="DIR", help="folder of the database and the secret (TABLERO_DATA)"
        )
        parser.add_argument("table", metavar="ACCOUNT/TABLE")

    def handle(self, *args: Any, table: str, **options: Any) -> None:
        migration.migrate(self.stderr.write)
        account, _, name = table.partition("/")
        try:
            found = tables.get(Account.objects.get(name=account).pk, name)
            distribution.distribute(found, by=command_actor())
        except Account.DoesNotExist:
            raise CommandError(f"The account {account} does not exist.") from None
        except AccountError as error:
            raise CommandError(str(error)) from None
        except StorageError as error:
            raise CommandError(error.text) from None
        self.stdout.write(f"{table} is distributed.")
