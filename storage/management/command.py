"""The base classes of the commands."""

import argparse
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from storage.accounts import accounts
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import StorageError
from storage.domain.refusals import Refused
from storage.domain.values.kinds import AccountKind
from storage.health import release
from storage.models import Account, Table
from storage.server import migration
from storage.sql.django import is_lost
from storage.tables import tables


def find_account(name: str) -> Account:
    """Return an account, even if this server may not serve it; raises CommandError."""
    return _existing(name, accounts.by_name(name))


def find_usable_account(name: str) -> Account:
    """Return an account that this server may serve; raises CommandError."""
    return _existing(name, accounts.find(name))


def _existing(name: str, account: Account | None) -> Account:
    if account is None:
        raise CommandError(f"The account {name} does not exist.")
    if account.kind not in set(AccountKind):
        raise CommandError(
            f"The account {name} is of the kind {account.kind}, which only a newer version knows."
        )
    return account


def find_table(account: str, name: str) -> Table:
    """Return a table; raises CommandError for an unknown account and ResourceNotFound for an unknown table."""
    return tables.get(find_account(account), name)


def quote_key(key: EntityKey) -> str:
    """Return the keys of an entity in quotation marks, as commands print them."""
    return f"{key.partition_key!r}, {key.row_key!r}"


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a type of arguments that are whole numbers within bounds."""
    bounds = f"from {least}" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"must be a number {bounds}")
        return int(text)

    return read


def add_common_arguments(
    parser: argparse.ArgumentParser, data: str = "folder of the database and the secret"
) -> None:
    """Add the options that the command line reads for each command."""
    parser.add_argument("--data", metavar="DIR", help=f"{data} (TABLERO_DATA)")
    parser.add_argument("--config", metavar="FILE", help="settings in TOML (TABLERO_CONFIG)")


class TableroCommand(BaseCommand):
    """Base command whose help lists only options of Tablero."""

    requires_system_checks: list[str] = []
    suppressed_base_arguments = {
        "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color",
        "--skip-checks",
    }  # fmt: skip

    def get_version(self) -> str:
        return release.version()


class DatabaseCommand(TableroCommand):
    """Base of commands that use the database; a refused operation becomes a CommandError."""

    error_status = 1  # exit status for an error

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_common_arguments(parser)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            self.prepare()
            return super().execute(*args, **options)
        except (CommandError, Refused, StorageError) as error:
            text = error.text if isinstance(error, StorageError) else str(error)
            raise CommandError(text, returncode=self.error_status) from None
        except (InterfaceError, OperationalError) as error:
            if not is_lost(error):
                raise
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise CommandError(
                f"The connection to the database was lost: {reason}.", returncode=self.error_status
            ) from None

    def prepare(self) -> None:
        """Refuse a database of another version before the command runs."""
        migration.check()
