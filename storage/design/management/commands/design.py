"""The command `design`: judge the design of tables."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder

from storage.design import design
from storage.design.design import Design
from storage.design.dumps import dump_design
from storage.design.findings import DesignKind, Finding, Weight
from storage.domain.errors import OperationTimedOut
from storage.domain.values.numbers import counted
from storage.management.command import DatabaseCommand, find_usable_account
from storage.tables import tables

_FOUND: Final = 1  # exit status if there are chosen findings
_NONE: Final = "none"
_KINDS: Final = tuple(str(kind) for kind in DesignKind)
_CHOICES: Final = (*Weight, *_KINDS, _NONE)


class Command(DatabaseCommand):
    help = (
        "Judge the design of a table, or of all tables of an account: partitions, keys, kinds of entities, and the"
        " queries of the last seven days. The exit status is 1 if there are chosen findings, and 2 for an error."
    )
    error_status = 2

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("target", metavar="ACCOUNT[/TABLE]")
        parser.add_argument(
            "--fail-on",
            metavar="KIND,…",
            default=Weight.PROBLEM.value,
            help=f"findings for which the exit status is 1: {', '.join(_CHOICES)}; default {Weight.PROBLEM}",
        )
        parser.add_argument("--json", action="store_true", help="write JSON")

    def handle(self, *args: Any, target: str, fail_on: str, json: bool, **options: Any) -> None:
        chosen = _read_choice(fail_on)
        account, _, name = target.partition("/")
        chosen_account = find_usable_account(account)
        examined = [tables.get(chosen_account, name)] if name else tables.listed(chosen_account)
        described: list[Design] = []
        for table in examined:
            try:
                described.append(design.describe(table))
            except OperationTimedOut:
                raise CommandError(f"Examining the table {table.name} took too long.") from None
        if json:
            self._write_json([dump_design(it) for it in described], is_one=bool(name))
        else:
            for line in _describe(described):
                self.stdout.write(line)
        if any(_is_chosen(finding, chosen) for it in described for finding in it.findings):
            raise SystemExit(_FOUND)

    def _write_json(self, content: list[dict[str, Any]], *, is_one: bool) -> None:
        written = content[0] if is_one else content
        self.stdout.write(json.dumps(written, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))


def _read_choice(text: str) -> frozenset[str]:
    chosen = frozenset(text.split(","))
    if unknown := sorted(chosen.difference(_CHOICES)):
        raise CommandError(f"{unknown[0]} is no kind of finding. Choose from {', '.join(_CHOICES)}.")
    return chosen


def _is_chosen(finding: Finding, chosen: frozenset[str]) -> bool:
    return finding.weight in chosen or str(finding.kind) in chosen


def _describe(designs: Sequence[Design]) -> Iterator[str]:
    for it in designs:
        partitions = it.shape.partitions
        about = "" if partitions.is_exact else "about "
        entities = counted(partitions.entities, "entity", "entities")
        yield f"{it.table.name}: {entities}, {about}{counted(partitions.number, 'partition')}"
        for finding in it.findings:
            yield f"  {finding.weight}: {finding.text} [{finding.kind}]"
            if finding.edit is not None:
                yield f"    bulk edit: {json.dumps(finding.edit, ensure_ascii=False)}"
        if not it.findings:
            yield "  Nothing was found."
