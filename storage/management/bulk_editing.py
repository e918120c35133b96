"""The command `bulk-edit`: edit all entities of a table that match a query."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.core.management import CommandError

from storage.activity.activity import command_actor
from storage.bulk_edit import bulk_edit_jobs, bulk_edit_previews
from storage.bulk_edit.bulk_edit_previews import BulkEditPreview
from storage.bulk_edit.bulk_edit_work import BulkEditRequest
from storage.bulk_edit.bulk_edits import COUNTED, Counts
from storage.domain.values.edm import Edm
from storage.domain.values.numbers import were
from storage.editing.bulk_edit import Presence
from storage.management.command import DatabaseCommand, find_table, quote_key
from storage.runtime import job_runner

_OF_COPIES: Final = ("to_table", "copies", "check", "repair")
_CHECK_LIMIT: Final = timedelta(days=1)

Read = Callable[[str], dict[str, object]]


def _split(text: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise argparse.ArgumentTypeError(f"write it as {form}")
    return name.strip(), value.strip()


def _setting(presence: Presence) -> Read:
    def read(text: str) -> dict[str, object]:
        name, expression = _split(text, "NAME=EXPRESSION")
        return {"op": "set", "property": name, "expression": expression, "presence": presence.value}

    return read


def _naming(op: str) -> Read:
    def read(text: str) -> dict[str, object]:
        name, other = _split(text, "NAME=NAME")
        return {"op": op, "property": name, "to": other}

    return read


def _conversion(text: str) -> dict[str, object]:
    name, type_ = _split(text, "NAME=TYPE")
    return {"op": "convert", "property": name, "type": type_}


# in the order in which they are given
_OPERATIONS: Final[Sequence[tuple[str, str, Read, str]]] = (
    ("--set", "NAME=EXPRESSION", _setting(Presence.ALL), "set a property"),
    ("--set-absent", "NAME=EXPRESSION", _setting(Presence.ABSENT), "set it where it is missing"),
    ("--set-present", "NAME=EXPRESSION", _setting(Presence.PRESENT), "set it where there is one"),
    ("--remove", "NAME", lambda name: {"op": "remove", "property": name}, "remove a property"),
    ("--rename", "OLD=NEW", _naming("rename"), "rename a property"),
    ("--copy", "NAME=NEW", _naming("copy"), "copy a property"),
    (
        "--convert",
        "NAME=TYPE",
        _conversion,
        f"convert a property to {', '.join(it.short_name for it in Edm)}",
    ),
    (
        "--partition-key",
        "EXPRESSION",
        lambda text: {"op": "key", "partition_key": text},
        "change the keys, or with --second-copy those of the copies",
    ),
    ("--row-key", "EXPRESSION", lambda text: {"op": "key", "row_key": text}, "likewise"),
)


class Command(DatabaseCommand):
    help = (
        "Edit or delete all entities of a table that a query finds, also while the server runs. Operations are applied"
        " in the order in which they are given; the edit can be undone as one."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("account")
        parser.add_argument("table")
        parser.add_argument("--filter", default="", help="a $filter; all entities without one")
        for option, form, read, description in _OPERATIONS:
            parser.add_argument(
                option, action="append", dest="operations", type=read, metavar=form, help=description
            )
        parser.add_argument(
            "--delete",
            action="append_const",
            dest="operations",
            const={"op": "delete"},
            help="delete the entities",
        )
        parser.add_argument(
            "--second-copy",
            action="store_true",
            help="leave the entities as they are, and write copies with the changes under other keys or in another"
            " table",
        )
        parser.add_argument(
            "--to-table", metavar="NAME", help="the table of the second copies; created if there is none"
        )
        parser.add_argument(
            "--copies",
            metavar="FILTER",
            help="with --check and --repair: a $filter that finds the copies; all entities of another table without"
            " one",
        )
        step = parser.add_mutually_exclusive_group()
        step.add_argument(
            "--check",
            action="store_true",
            help="only say which second copies are missing, differ, or are left over; exit with 1 if there are any",
        )
        step.add_argument(
            "--repair",
            action="store_true",
            help="write missing second copies, replace those that differ, and delete those that are left over",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="with --rename, --copy and --second-copy: replace what is there",
        )
        parser.add_argument(
            "--allow-loss", action="store_true", help="convert values that lose something, too"
        )
        parser.add_argument("--number", type=int, help="how many entities the query must find")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")

    def handle(self, *args: Any, account: str, table: str, **options: Any) -> None:
        operations = _joined(options["operations"] or [])
        if options["second_copy"]:
            operations = _copying(operations, options)
        elif wrong := [name for name in _OF_COPIES if options[name]]:
            raise CommandError(f"--{wrong[0].replace('_', '-')} needs --second-copy.")
        for operation in operations:
            if options["replace"] and operation["op"] in ("rename", "copy", "second-copy"):
                operation["replace"] = True
        edit = BulkEditRequest(options["filter"], operations, options["allow_loss"])
        if options["check"] or options["repair"]:
            edit = edit.repairing() or edit
        existing = find_table(account, table)
        if options["check"]:
            self._check(bulk_edit_previews.preview(existing, edit, limit=_CHECK_LIMIT, is_check=True))
            return
        if options["dry_run"]:
            self._show(bulk_edit_previews.preview(existing, edit))
            return
        job = bulk_edit_jobs.start(existing, edit, by=command_actor(), number=options["number"])
        self._write(bulk_edit_jobs.outcome_of(job_runner.finish(job)).counts)

    def _check(self, preview: BulkEditPreview) -> None:
        counts = preview.counts
        if preview.is_in_step:
            self.stdout.write(f"In step: {counts.unchanged} second copies are up to date.")
            return
        numbers = {"missing": counts.copied, "differing": counts.replaced, "left over": counts.left_over}
        self.stdout.write(
            f"{counts.unchanged} up to date, {', '.join(f'{number} {name}' for name, number in numbers.items())}"
        )
        for it in preview.samples:
            name = "missing" if it.replaced is None else "differs"
            self.stdout.write(f"  {name}: {quote_key(it.key)}, the copy of {quote_key(it.old_key)}")
        for it in preview.left_over:
            self.stdout.write(f"  left over: {quote_key(it.key)}")
        self._write_obstacles(counts)
        raise CommandError("The second copies are out of step. Repair them with --repair.")

    def _show(self, preview: BulkEditPreview) -> None:
        about = "" if preview.is_exact else "about "
        matches = "an unknown number of entities"
        if preview.matches is not None:
            matches = f"{about}{preview.matches} {'entity' if preview.matches == 1 else 'entities'}"
        examined = "" if preview.is_complete else f"; {preview.examined} {were(preview.examined)} examined"
        self.stdout.write(f"The query finds {matches}{examined}.")
        self._write(preview.counts)
        for change, number in preview.types.most_common():
            before, after = (it.short_name if it else "missing" for it in (change.before, change.after))
            self.stdout.write(f"  {change.property}: {before} to {after} in {number}")
        for lost, number in preview.losses.most_common():
            self.stdout.write(f"  {lost.property}: loses {lost.loss} in {number}")

    def _write(self, counts: Counts) -> None:
        names = {name: name.replace("_", " ") for name in COUNTED} | {"left_over": "left over and deleted"}
        parts = [f"{number} {text}" for name, text in names.items() if (number := getattr(counts, name))]
        self.stdout.write(", ".join(parts) or "Nothing to edit.")
        self._write_obstacles(counts)

    def _write_obstacles(self, counts: Counts) -> None:
        for obstacle, number in counts.obstacles.most_common():
            about = ": ".join(filter(None, (obstacle.property, obstacle.kind, obstacle.detail)))
            self.stdout.write(f"  skipped {number}: {about}")
            for key, met in counts.examples:
                if met == obstacle:
                    self.stdout.write(f"    {quote_key(key)}")


def _copying(operations: Sequence[dict[str, Any]], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the operations with a second copy, which has the keys, as the last one."""
    copy: dict[str, Any] = {"op": "second-copy"}
    for it in operations:
        if it["op"] == "key":
            copy = {**it, **copy}
    table, copies = options["to_table"], options["copies"]
    copy |= ({} if table is None else {"table": table}) | ({} if copies is None else {"copies": copies})
    return [*(it for it in operations if it["op"] != "key"), copy]


def _joined(operations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge operations that set PartitionKey and RowKey into a single key change."""
    joined: list[dict[str, Any]] = []
    for it in operations:
        key = next((other for other in joined if other["op"] == it["op"] == "key"), None)
        if key is None or it.keys() & key.keys() > {"op"}:
            joined.append(dict(it))
        else:
            key.update(it)
    return joined
