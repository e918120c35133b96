"""Changes of cells: staged in the page until saved, or a range changed at once."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.core.exceptions import BadRequest, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from console.entities import problems
from console.entities.typed_input import TypedInput, read_form, read_type, write_input
from console.grid import cells, tokens
from console.models import EditMode
from console.site.access import user_of
from console.site.toasts import count_text
from console.site.typed_text import sentence
from storage.domain.entities.changes import Change, Update
from storage.domain.entities.entity import SYSTEM_PROPERTIES, Entity, EntityKey, StoredEntity, read_stored
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY, read_if_match, write_etag
from storage.domain.values.names import check_property_name
from storage.editing import merge
from storage.editing.input_context import InputContext
from storage.editing.typed_text import InvalidText
from storage.entities import entities
from storage.models import Account, Table

LIMIT: Final = 1_000  # changed cells
_LONGEST: Final = 1_000  # rows or columns of a rectangle
_NOT_OURS: Final = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    InvalidText,
    StorageError,
)


def is_staging(request: HttpRequest, account: Account) -> bool:
    """Return whether cell changes are staged, by the user's choice or because the account is protected."""
    return account.protected or user_of(request).edit_mode == EditMode.STAGED


@dataclass(frozen=True, slots=True)
class CellChange:
    """A change of one property of an entity."""

    key: EntityKey
    name: str
    etag: str
    value: EdmValue | None  # None removes the property
    typed: TypedInput | None = None  # the value as it was entered, if it was

    @property
    def kept(self) -> dict[str, Any]:
        """Return the change in the form in which a page keeps it."""
        return {
            "markup": cells.draw_or_absent(self.value).markup,
            "key": tokens.encode_key(self.key),
            "property": self.name,
            "etag": self.etag,
            "typed": self.typed or write_input(self.value, Edm.STRING),
            "is_removed": self.value is None,
        }


def read_key(token: str) -> EntityKey:
    """Decode the key in a token; raises ValueError for an invalid one."""
    key = tokens.decode_key(token)
    if key is None:
        raise ValueError(token)
    return key


def read_name(name: str) -> str:
    """Validate the name of an editable property; raises ValueError or StorageError."""
    check_property_name(name)
    if name in SYSTEM_PROPERTIES:
        raise ValueError(name)
    return name


# collected changes


def read_kept(text: str, context: InputContext) -> list[CellChange]:
    """Parse the changes kept by a page; raises BadRequest."""
    try:
        items = json.loads(text)
        if not isinstance(items, list) or len(items) > LIMIT:
            raise TypeError
        return [_read_one(one, context) for one in items]
    except _NOT_OURS:
        raise BadRequest from None


def _read_one(item: Mapping[str, str], context: InputContext) -> CellChange:
    key, name, type_ = read_key(item["key"]), read_name(item["property"]), read_type(item["type"])
    if read_if_match(item["etag"]) == ANY:
        raise ValueError
    typed = TypedInput(type_, read_form(type_, item["form"]), item["text"])
    return CellChange(key, name, item["etag"], None if item.get("removed") else typed.read(context))


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """Staged change and the current value; ``etag`` is the current one, ``error`` tells why it cannot be saved."""

    staged: CellChange
    token: str
    now: EdmValue | None
    etag: str
    error: str

    @property
    def is_stale(self) -> bool:
        return bool(self.etag) and self.etag != self.staged.etag


def review(table: Table, changes: Sequence[CellChange], errors: Mapping[EntityKey, str]) -> list[ReviewLine]:
    stored = _stored(table, changes)
    return [_line(table, one, stored.get(one.key), errors.get(one.key, "")) for one in changes]


def _stored(table: Table, changes: Iterable[CellChange]) -> dict[EntityKey, StoredEntity]:
    return {stored.key: stored for stored in entities.get_many(table, {one.key for one in changes})}


def _line(table: Table, change: CellChange, stored: StoredEntity | None, error: str) -> ReviewLine:
    token = tokens.encode_key(change.key)
    if stored is None:
        return ReviewLine(change, token, None, "", problems.describe_deletion(table, change.key))
    etag = write_etag(stored.timestamp)
    if etag != change.etag:
        error = _("This entity was changed while you were editing.")
    return ReviewLine(change, token, read_stored(stored).properties.get(change.name), etag, error)


def changes_of(table: Table, cells: Sequence[CellChange]) -> list[Change]:
    """Combine changed cells into one change per entity, in order of first edit."""
    stored = _stored(table, cells)
    by_entity: dict[EntityKey, list[CellChange]] = {}
    for one in cells:
        by_entity.setdefault(one.key, []).append(one)
    return [change_entity(those, stored.get(key)) for key, those in by_entity.items()]


def change_entity(cells: Sequence[CellChange], stored: StoredEntity | None) -> Change:
    """Combine the changed cells of an entity into one change."""
    key = cells[0].key
    condition = read_if_match(cells[0].etag)
    values = {one.name: one.value for one in cells if one.value is not None}
    removed = {one.name for one in cells if one.value is None}
    if not removed or stored is None:
        return Update(Entity(key, values), condition, merge=True)
    rest = {name: value for name, value in read_stored(stored).properties.items() if name not in removed}
    return Update(Entity(key, {**rest, **values}), condition, merge=False)


# a rectangle

Values = Sequence[Sequence[EdmValue | None]]  # by row and column; None: not set


@dataclass(frozen=True, slots=True)
class CellRange:
    """Range of cells with their stored values."""

    rows: Sequence[tuple[EntityKey, str]]  # the key and the ETag of each row
    # the name of each column, and the usual type of its values, for cells that are not set
    columns: Sequence[tuple[str, Edm]]
    stored: Values

    def change(self, action: str, text: str, context: InputContext) -> list[CellChange]:
        """Return the cells that differ after fill, clear or paste of ``text``; raises ValidationError."""
        match action:
            case "fill":  # the values of the first row in all others
                values: Values = [self.stored[0]] * len(self.rows)
            case "clear":
                values = [[None] * len(self.columns)] * len(self.rows)
            case _:
                values = self._pasted(text, context)
        changes = list(islice(self._changes(values), LIMIT + 1))
        if len(changes) > LIMIT:
            what = _("Up to %(shown)s cells can be changed at once. Nothing was changed.")
            raise ValidationError(count_text(what, LIMIT))
        return changes

    def _pasted(self, text: str, context: InputContext) -> Values:
        """Parse pasted lines and tabs, starting at the first cell; a single value fills all cells."""
        texts = list(csv.reader(io.StringIO(text, newline=""), "excel-tab")) or [[""]]
        if len(texts) == 1 and len(texts[0]) == 1:
            texts = [texts[0] * len(self.columns)] * len(self.rows)
        width = max(map(len, texts))
        if len(texts) > len(self.rows) or width > len(self.columns):
            what = _(
                "The clipboard has %(rows)s × %(columns)s cells, which do not fit here. Nothing was changed."
            )
            raise ValidationError(what % {"rows": len(texts), "columns": width})
        return [
            [self._read(row, column, text, context) for column, text in enumerate(line)]
            for row, line in enumerate(texts)
        ]

    def _read(self, row: int, column: int, text: str, context: InputContext) -> EdmValue | None:
        if not text:
            return None
        name, type_ = self.columns[column]
        if (before := self.stored[row][column]) is not None:
            type_ = before.type
        form = read_form(type_, "base64" if type_ is Edm.BINARY else "")  # as cells are copied
        try:
            return TypedInput(type_, form, text).read(context)
        except InvalidText as refusal:
            partition_key, row_key = self.rows[row][0]
            place = f"{name} ({partition_key}, {row_key})"
            what = _("%(place)s: %(why)s Nothing was changed.")
            raise ValidationError(what % {"place": place, "why": sentence(refusal, type_)}) from None

    def _changes(self, values: Values) -> Iterator[CellChange]:
        for (key, etag), before, after in zip(self.rows, self.stored, values, strict=False):
            for (name, _type), old, new in zip(self.columns, before, after, strict=False):
                if not merge.is_same(old, new):
                    yield CellChange(key, name, etag, new)


def read_range(table: Table, text: str) -> CellRange:
    """Parse ``{"rows": [[key, etag], …], "columns": [[name, type], …]}``; raises BadRequest."""
    try:
        values = json.loads(text)
        rows = [(read_key(key), str(etag)) for key, etag in values["rows"][:_LONGEST]]
        columns = [(read_name(name), read_type(type_)) for name, type_ in values["columns"][:_LONGEST]]
    except _NOT_OURS:
        raise BadRequest from None
    if not rows or not columns:
        raise BadRequest
    pages = entities.get_many_paged(table, [key for key, _etag in rows])
    properties = {stored.key: read_stored(stored).properties for page in pages for stored in page}
    stored = [[properties.get(key, {}).get(name) for name, _type in columns] for key, _etag in rows]
    return CellRange(rows, columns, stored)
