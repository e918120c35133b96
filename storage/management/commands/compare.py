"""The command `compare`: show the differences between two accounts or tables, or apply them."""

import argparse
from typing import Any

from storage.accounts import accounts
from storage.activity.activity import command_actor
from storage.compare import applying, comparing, sides
from storage.compare.applying import Selection, Target
from storage.compare.comparing import ComparedTable, Comparison
from storage.compare.side_names import SideName
from storage.compare.sides import Side, SideNotFound
from storage.domain.entities.restoring import Effect
from storage.domain.refusals import Reason
from storage.management.command import DatabaseCommand, quote_key
from storage.undo.outcomes import TableOutcome


class Command(DatabaseCommand):
    help = (
        "Compare two accounts or tables, as they are or were, and make one equal to the other, also while the server"
        " runs."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        side = "ACCOUNT[/TABLE][@TIME or @SNAPSHOT]"
        parser.add_argument("left", metavar="LEFT", help=side)
        parser.add_argument("right", metavar="RIGHT", help=side)
        parser.add_argument(
            "--json", action="store_true", help="print the entities that differ, a JSON object per line"
        )
        parser.add_argument(
            "--apply", choices=[it.value for it in Target], help="make this side equal to the other"
        )
        parser.add_argument(
            "--table",
            action="append",
            dest="tables",
            metavar="TABLE",
            help="only this table; can be repeated",
        )
        parser.add_argument(
            "--policies", action="store_true", help="with --apply: stored access policies too"
        )
        parser.add_argument(
            "--service-properties", action="store_true", help="with --apply: service properties too"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="with --apply: only say what would be done"
        )

    def handle(self, *args: Any, left: str, right: str, **options: Any) -> None:
        comparison = comparing.compare(_find(left), _find(right))
        comparison.check_tables(options["tables"] or ())
        if options["apply"]:
            self._apply(comparison, options)
        elif options["json"]:
            for difference in comparing.walk(comparison, tables=options["tables"]):
                self.stdout.write(comparing.write_difference(*difference).decode())
        else:
            self._summarize(comparison, options["tables"])

    def _summarize(self, comparison: Comparison, tables: list[str] | None) -> None:
        for table in comparison.tables:
            if tables is None or table.name in tables:
                self.stdout.write(f"{table.name}  {_describe(table)}")
        for name, side in comparison.not_compared.items():
            if tables is None:
                self.stdout.write(f"{name}  not in {side}")
        if comparison.service_properties is not None:
            self.stdout.write("service properties differ")
        if not (comparison.tables or comparison.not_compared or comparison.service_properties):
            self.stdout.write("No differences.")

    def _apply(self, comparison: Comparison, options: dict[str, Any]) -> None:
        selection = Selection(
            options["tables"], policies=options["policies"], service_properties=options["service_properties"]
        )
        done = applying.apply(
            comparison,
            Target(options["apply"]),
            selection,
            by=command_actor(),
            read_at=comparison.read_at,
            dry_run=options["dry_run"],
        )
        for table in done.tables:
            self.stdout.write(f"{table.name}  {_describe_applied(table)}")
            for it in table.examples:
                what = f"entity {quote_key(it.key)}" if it.key is not None else "table"
                self.stdout.write(f"  {what}: {it.misfit or it.reason}")
        if done.service_properties:
            self.stdout.write("service properties")
        if not (done.tables or done.service_properties):
            self.stdout.write("Nothing to apply.")


def _find(written: str) -> Side:
    name = SideName.read(written)
    account = None if name is None else accounts.find(name.account)
    if name is None or account is None:
        raise SideNotFound(Reason.NO_ACCOUNT, account=written if name is None else name.account)
    return sides.find(name, account)


def _describe(table: ComparedTable) -> str:
    counts = comparing.count(table)
    numbers = {name: number for name, number in counts._asdict().items() if name != "identical"}
    parts = [f"{number} {name.replace('_', ' ')}" for name, number in numbers.items() if number]
    if table.left is None or table.right is None:
        parts.insert(0, "only right" if table.left is None else "only left")
    parts += [
        name
        for name, both in (("description", table.descriptions), ("policies", table.policies))
        if both is not None
    ]
    return ", ".join(parts) or "identical"


def _describe_applied(table: TableOutcome) -> str:
    effects = (Effect.INSERTED, Effect.CHANGED, Effect.DELETED, Effect.SKIPPED)
    flags = {"created": table.is_created, "deleted": table.is_deleted, "policies": table.policies}
    parts = [name for name, is_set in flags.items() if is_set]
    parts += [f"{number} {effect}" for effect in effects if (number := table.number(effect))]
    return ", ".join(parts) or "nothing"
