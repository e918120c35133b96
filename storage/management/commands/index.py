"""The command `index`: list, add and drop the property indexes of a table."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.template.defaultfilters import filesizeformat

from storage.activity.activity import command_actor
from storage.jobs import jobs
from storage.management.command import DatabaseCommand, find_table
from storage.models import Table
from storage.runtime import job_runner
from storage.tables import indexes
from storage.tables.index_rules import IndexOrigin
from storage.tables.indexes import INDEX_JOB
from storage.tables.subject import TableVerb


class Command(DatabaseCommand):
    help = "List, add and drop indexes of single properties, which serve ranges and order, also while the server runs."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)

        def add_action(action: str, description: str) -> argparse.ArgumentParser:
            sub_parser = actions.add_parser(action, help=description)
            sub_parser.add_argument("account")
            sub_parser.add_argument("table")
            return sub_parser

        add_action("list", "list the indexes of a table")
        add_action("add", "make the index of a property and wait until it is ready").add_argument("property")
        add_action("drop", "drop the index of a property").add_argument("property")

    def handle(self, *args: Any, action: str, account: str, table: str, **arguments: Any) -> None:
        getattr(self, f"_{action}")(find_table(account, table), **arguments)

    def _list(self, table: Table, **_: Any) -> None:
        for details in indexes.describe(table):
            index, size = details.index, filesizeformat(details.size)
            used = f"{index.last_used_at:%Y-%m-%d}" if index.last_used_at else "never"
            facts = [index.name, index.state, size, f"used {used}"]
            if index.origin == IndexOrigin.ADAPTIVE and index.reason:
                facts.append(f"added for {index.reason['scans']} queries: {index.reason['filter']}")
            self.stdout.write("  ".join(filter(None, (*facts, index.error))))

    def _add(self, table: Table, property: str, **_: Any) -> None:  # noqa: A002  as the argument is called
        done = indexes.add(table, property, by=command_actor())
        self._wait(table)
        index = indexes.find(table, property)
        if index is not None and index.error:
            raise CommandError(index.error)
        kept = (
            " The server had added the index, and keeps it now." if done.verb == TableVerb.INDEX_KEEP else ""
        )
        self.stdout.write(f"{property} of {table.name} is indexed.{kept}")

    def _drop(self, table: Table, property: str, **_: Any) -> None:  # noqa: A002
        indexes.drop(table, property, by=command_actor())
        self._wait(table)
        self.stdout.write(f"{property} of {table.name} is no longer indexed.")

    def _wait(self, table: Table) -> None:
        """Build the pending indexes, unless a server is doing so already."""
        for job in jobs.unfinished(INDEX_JOB, table=table):
            job_runner.finish(job)
