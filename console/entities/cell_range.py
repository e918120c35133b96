"""A rectangle of cells that is changed as a whole: pasted texts, the values of its first row, or nothing."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from console.entities.staged import StagedChange
from console.entities.value_field import TypedInput, ValueField, read_form
from console.grid import tokens
from storage.domain.entities.entity import SYSTEM_PROPERTIES, EntityKey, read_stored
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.names import check_property_name
from storage.editing import merge
from storage.models import Table
from storage.operations.entities import entities

LIMIT: Final = 1_000  # changed cells
_LONGEST: Final = 1_000  # rows or columns of a rectangle

Values = Sequence[Sequence[EdmValue | None]]  # by row and column; None: not set


class UnreadableRange(Exception):
    """The input does not come from our pages."""


class InvalidRange(Exception):
    """Nothing can be changed; the text says why."""


@dataclass(frozen=True, slots=True)
class RangeRow:
    key: EntityKey
    etag: str


@dataclass(frozen=True, slots=True)
class RangeColumn:
    """``type``: that of the other values of the column, for cells that are not set."""

    name: str
    type: Edm


@dataclass(frozen=True, slots=True)
class CellRange:
    """Cells from the first one down and to the right, and the values that are stored in them."""

    rows: Sequence[RangeRow]
    columns: Sequence[RangeColumn]
    stored: Values

    def fill(self) -> Iterator[StagedChange]:
        """The values of the first row in all others."""
        return self._changes([self.stored[0]] * len(self.rows))

    def clear(self) -> Iterator[StagedChange]:
        return self._changes([[None] * len(self.columns)] * len(self.rows))

    def paste(self, text: str, now: datetime) -> Iterator[StagedChange]:
        """A text of lines and tabs, from the first cell on; one value goes into all cells. Raises InvalidRange."""
        texts = list(csv.reader(io.StringIO(text, newline=""), "excel-tab")) or [[""]]
        if len(texts) == 1 and len(texts[0]) == 1:
            texts = [texts[0] * len(self.columns)] * len(self.rows)
        width = max(map(len, texts))
        if len(texts) > len(self.rows) or width > len(self.columns):
            what = _(
                "The clipboard has %(rows)s × %(columns)s cells, which do not fit here. Nothing was changed."
            )
            raise InvalidRange(what % {"rows": len(texts), "columns": width})
        return self._changes([self._read(row, line, now) for row, line in enumerate(texts)])

    def _read(self, row: int, texts: Sequence[str], now: datetime) -> list[EdmValue | None]:
        return [self._read_one(row, column, text, now) for column, text in enumerate(texts)]

    def _read_one(self, row: int, column: int, text: str, now: datetime) -> EdmValue | None:
        if not text:
            return None
        before = self.stored[row][column]
        type_ = self.columns[column].type if before is None else before.type
        form = read_form(type_, "base64" if type_ is Edm.BINARY else "")  # as cells are copied
        try:
            return ValueField(now).clean(TypedInput(type_, form, text))
        except ValidationError as error:
            key = self.rows[row].key
            place = f"{self.columns[column].name} ({key.partition_key}, {key.row_key})"
            what = _("%(place)s: %(why)s Nothing was changed.")
            raise InvalidRange(what % {"place": place, "why": error.message}) from None

    def _changes(self, values: Values) -> Iterator[StagedChange]:
        for row, before, after in zip(self.rows, self.stored, values, strict=False):
            for column, old, new in zip(self.columns, before, after, strict=False):
                if not merge.is_same(old, new):
                    yield StagedChange(row.key, column.name, row.etag, new)


def read_range(table: Table, text: str) -> CellRange:
    """Read ``{"rows": [[key, etag], …], "columns": [[name, type], …]}``; raises UnreadableRange."""
    try:
        found = json.loads(text)
        rows = [_read_row(*row) for row in found["rows"][:_LONGEST]]
        columns = [_read_column(*column) for column in found["columns"][:_LONGEST]]
    except (ValueError, TypeError, KeyError, RecursionError, StorageError):
        raise UnreadableRange from None
    if not rows or not columns:
        raise UnreadableRange
    return CellRange(rows, columns, _stored(table, rows, columns))


def _read_row(token: str, etag: str) -> RangeRow:
    key = tokens.decode_key(token)
    if key is None:
        raise UnreadableRange
    return RangeRow(key, str(etag))


def _read_column(name: str, type_: str) -> RangeColumn:
    check_property_name(name)
    if name in SYSTEM_PROPERTIES:
        raise UnreadableRange
    return RangeColumn(name, Edm(type_) if type_ in set(Edm) else Edm.STRING)


def _stored(table: Table, rows: Sequence[RangeRow], columns: Sequence[RangeColumn]) -> Values:
    pages = entities.get_many_paged(table, [row.key for row in rows])
    found = {stored.key: read_stored(stored).properties for page in pages for stored in page}
    return [[found.get(row.key, {}).get(column.name) for column in columns] for row in rows]
