"""Bulk edit being composed: the grid's query and a list of operations, fully contained in the address."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from console.grid import saved_urls
from console.grid.state import GridState, read_state
from console.site.addresses import path_of
from storage.activity.undoing import CannotUndo, find_table
from storage.bulk_edit.bulk_edit_work import BulkEditRequest
from storage.bulk_edit.subject import BulkEditVerb
from storage.domain.entities.entity import EntityKey
from storage.domain.filters.ast import all_of, any_of, equals
from storage.domain.filters.writer import write
from storage.domain.values.numbers import read_number
from storage.editing.bulk_edit import MEMBERS, OPERATION_LIMIT, OPTIONAL, SWITCHES
from storage.models import Activity, Table

_LOSS: Final = "loss"
_NAMES: Final = frozenset(name for members in MEMBERS.values() for name in members)


@dataclass(frozen=True, slots=True)
class OperationDraft:
    """Operation with its members as typed, including those hidden for its kind."""

    op: str = "set"
    members: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(_NAMES, ""))

    @property
    def written(self) -> dict[str, Any]:
        """Return the operation as JSON, without unset optional members."""
        texts = {name: self.members[name] for name in MEMBERS[self.op]}
        named = {name: text for name, text in texts.items() if text or name not in OPTIONAL}
        return {"op": self.op, **named, **{name: True for name in SWITCHES if name in named}}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        """Return the draft of an operation in JSON."""
        members = {name: written.get(name, "") for name in _NAMES}
        return cls(
            written["op"], {name: "1" if it is True else str(it or "") for name, it in members.items()}
        )

    @property
    def is_begun(self) -> bool:
        """Return whether required fields are still empty, so that no error is shown yet."""
        written = self.written
        lacks_place = self.op == "key" or (self.op == "second-copy" and "table" not in written)
        return "" in written.values() or (lacks_place and not written.keys() & {"partition_key", "row_key"})


@dataclass(frozen=True, slots=True)
class BulkEditDraft:
    state: GridState
    operations: tuple[OperationDraft, ...]
    allows_loss: bool = False

    @property
    def request(self) -> BulkEditRequest:
        return BulkEditRequest(self.state.filter, [it.written for it in self.operations], self.allows_loss)

    @property
    def deletes(self) -> bool:
        return [it.op for it in self.operations] == ["delete"]

    @property
    def makes_copies(self) -> bool:
        return self.operations[-1].op == "second-copy"

    @property
    def is_repair(self) -> bool:
        """Return whether it also replaces and deletes second copies, so that its preview is a check of them."""
        return self.makes_copies and all(self.operations[-1].members[name] for name in SWITCHES)

    def repairing(self) -> Self:
        """Return the draft that also replaces and deletes second copies."""
        *before, last = self.operations
        repair = replace(last, members={**last.members, **dict.fromkeys(SWITCHES, "1")})
        return replace(self, operations=(*before, repair))

    def address(self, table: Table) -> str:
        """Return the address of the draft's page; a long one is stored as a saved URL."""
        place, query = path_of("bulk_edit:show", table.account.name, table.name), urlencode(self._fields)
        if len(place) + len(query) >= saved_urls.LONGEST:
            query = urlencode({saved_urls.NAME: saved_urls.keep(table, query).key})
        return f"{place}?{query}" if query else place

    def grid_address(self, table: Table) -> str:
        """Return the address of the grid with the entities of its query."""
        return self.state.shortened(table).address(table)

    @property
    def _fields(self) -> list[tuple[str, str]]:
        fields = [
            (f"{place}-{name}", "1" if value is True else value)
            for place, operation in enumerate(self.operations)
            for name, value in operation.written.items()
        ]
        return [*self.state.fields, *fields, *([(_LOSS, "1")] if self.allows_loss else [])]

    def act(self, action: str) -> tuple[Self, str]:
        """Apply a button of the form; return the draft, and the place and name of the field to focus."""
        kind, _, text = action.partition(":")
        place, last = read_number(text, digits=3) or 0, len(self.operations) - 1
        operations = list(self.operations)
        match kind:
            case "add" if len(operations) < OPERATION_LIMIT:
                return replace(self, operations=(*operations, OperationDraft())), f"{last + 1}-op"
            case "remove" if last > 0 and place <= last:
                del operations[place]
                return replace(self, operations=tuple(operations)), f"{min(place, last - 1)}-op"
            case "up" if 0 < place <= last:
                operations[place - 1 : place + 1] = operations[place], operations[place - 1]
                return replace(
                    self, operations=tuple(operations)
                ), f"{place - 1}-{'up' if place > 1 else 'down'}"
            case "down" if place < last:
                operations[place : place + 2] = operations[place + 1], operations[place]
                return (
                    replace(self, operations=tuple(operations)),
                    f"{place + 1}-{'down' if place + 1 < last else 'up'}",
                )
            case "check" if self.makes_copies:
                return self.repairing(), f"{last}-copies"
            case "allow-loss":
                return replace(self, allows_loss=True), f"{last}-op"
        return self, f"{min(place, last)}-op"


def read_draft(given: QueryDict, table: Table) -> BulkEditDraft:
    """Parse a draft from an address or form; without operations, it starts with an empty one."""
    state = read_state(given, table)
    if state.saved_url is not None:
        given = saved_urls.merge_query(state.saved_url, given)
    lasting = replace(
        state.at_start(), open="", is_counted=False, has_facets=False, saved_url=None, as_of=None
    )
    return BulkEditDraft(lasting, tuple(_read_operations(given)) or (OperationDraft(),), _LOSS in given)


def _read_operations(given: QueryDict) -> Iterator[OperationDraft]:
    for place in count():
        op = given.get(f"{place}-op", "")
        if op not in MEMBERS or place >= OPERATION_LIMIT:
            return
        yield OperationDraft(op, {name: given.get(f"{place}-{name}", "") for name in _NAMES})


def deletion_address(table: Table, text: str) -> str:
    """Return the address of the page that deletes all entities of a filter."""
    return BulkEditDraft(GridState(filter=text), (OperationDraft("delete"),)).address(table)


def check_address(table: Table, described: Mapping[str, Any]) -> str | None:
    """Return the address of the check of an edit's second copies; None for an edit that makes none."""
    operations = described.get("operations") or ()
    if not operations or operations[-1].get("op") != "second-copy":
        return None
    drafts = tuple(map(OperationDraft.read, operations))
    state = GridState(filter=described.get("filter", ""))
    return BulkEditDraft(state, drafts, bool(described.get("allow_loss"))).repairing().address(table)


def next_page(done: Activity) -> tuple[str, str] | None:
    """Return the address and label of the check of the second copies that an activity wrote."""
    if done.verb != BulkEditVerb.SECOND_COPY:
        return None
    try:
        address = check_address(find_table(done), done.detail)
    except CannotUndo:  # the table is gone
        return None
    return None if address is None else (address, _("Check copies"))


def edit_address(table: Table, text: str, operations: Sequence[Mapping[str, str]]) -> str:
    """Return the address of the page that edits all entities of a filter, with operations as in the management API."""
    drafts = tuple(OperationDraft(it["op"], {name: it.get(name, "") for name in _NAMES}) for it in operations)
    return BulkEditDraft(GridState(filter=text), drafts).address(table)


def write_keys(keys: Sequence[EntityKey]) -> str:
    """Return the filter that matches the entities with these keys."""
    partitions = [
        all_of([equals("PartitionKey", name), any_of([equals("RowKey", key.row_key) for key in partition])])
        for name, partition in groupby(sorted(set(keys)), key=lambda it: it.partition_key)
    ]
    return write(any_of(partitions))
