"""Base of the commands that move the rows of a table."""

import argparse
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError

from storage.activity.activity import command_actor
from storage.management.command import DatabaseCommand, find_table


class MovingCommand(DatabaseCommand):
    """Command that moves a table; ``move`` is the operation, ``done`` completes the success message."""

    move: Callable[..., object]
    done: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("table", metavar="ACCOUNT/TABLE")

    def handle(self, *args: Any, table: str, **options: Any) -> None:
        account, _, name = table.partition("/")
        try:
            self.move(find_table(account, name), by=command_actor())
        except (OperationalError, InterfaceError) as error:
            problem = str(error).strip().splitlines()[0]
            raise CommandError(
                f"The connection to the database was lost: {problem}. Look with doctor where the rows are; then run"
                " the same command again."
            ) from None
        self.stdout.write(f"{table} {self.done}.")
