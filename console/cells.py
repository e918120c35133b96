"""How a stored value looks in a grid: short enough for a cell, true in every character that is shown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from storage.domain import encoding
from storage.domain.edm import Edm, EdmValue, write_datetime
from storage.domain.entity import Entity, StoredEntity, read_stored

LONGEST: Final = 160  # characters of a String
LONGEST_BINARY: Final = 24  # bytes of a Binary
NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})
MIXED: Final = "mix"

# what would not be seen, or would change how the rest of a line is seen, and what is shown for it; joiners stay as
# they are, for scripts and emoji are made with them
_PICTURES: Final = {" ": "·", "\n": "↵", "\t": "⇥", "\x7f": "\u2421"} | {
    chr(code): chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)
}
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u061c\u2000-\u200b\u200e\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff\ufffe\uffff]"
)
_UNSEEN_OR_SPACE = re.compile(f" |{_UNSEEN.pattern}")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # an EDM name, or mix
    is_pinned: bool = False
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    text: str | SafeString
    state: str = ""  # absent, empty, whitespace
    type: str = ""  # where the column has several
    size: str = ""  # of what is cut
    is_pinned: bool = False
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    label: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    count: int  # of all rows with the header, or -1
    first: int  # the number of the first row here, the header being 1


ABSENT: Final = Cell("", state="absent")


def grid(label: str, found: Sequence[StoredEntity], *, before: int, is_last: bool) -> Grid:
    """Keys, then properties in the order they were first seen in, then Timestamp."""
    entities = [read_stored(stored) for stored in found]
    columns = _columns(entities)
    rows = [_row(entity, columns, stored.timestamp) for entity, stored in zip(entities, found, strict=True)]
    keys = [Column(name, Edm.STRING, is_pinned=True) for name in ("PartitionKey", "RowKey")]
    last = Column("Timestamp", Edm.DATETIME)
    # both count the header
    count = before + len(rows) + 1 if is_last else -1
    return Grid(label, [*keys, *columns, last], rows, count, before + 2)


def _columns(entities: Sequence[Entity]) -> list[Column]:
    types: dict[str, set[Edm]] = {}
    for entity in entities:
        for name, value in entity.properties.items():
            types.setdefault(name, set()).add(value.type)
    return [
        Column(name, next(iter(found)) if len(found) == 1 else MIXED, is_number=found <= NUMBERS)
        for name, found in types.items()
    ]


def _row(entity: Entity, columns: Sequence[Column], timestamp: int) -> list[Cell]:
    keys = [_text(key, is_pinned=True) for key in entity.key]
    cells = [cell(entity.properties.get(column.name), column) for column in columns]
    return [*keys, *cells, Cell(write_datetime(timestamp))]


def cell(value: EdmValue | None, column: Column) -> Cell:
    if value is None:
        return ABSENT
    type_ = value.type.value if column.type == MIXED else ""
    match value:
        case (Edm.STRING, str(text)):
            return _text(text, type_=type_)
        case (Edm.BINARY, bytes(data)):
            return _binary(data, type_)
    return Cell(encoding.write(value).strip('"'), type=type_, is_number=value.type in NUMBERS)


def _text(text: str, *, type_: str = "", is_pinned: bool = False) -> Cell:
    if not text:
        return Cell("", state="empty", type=type_, is_pinned=is_pinned)
    is_space = text.isspace()
    unseen = _UNSEEN_OR_SPACE if is_space else _UNSEEN
    shown = unseen.sub(_picture, escape(text[:LONGEST]))
    state = "whitespace" if is_space else ""
    # the only markup in it is ours
    return Cell(mark_safe(shown), state=state, type=type_, size=_cut(text), is_pinned=is_pinned)  # noqa: S308


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    return f'<span class="mark">{_PICTURES.get(character, f"U+{ord(character):04X}")}</span>'


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return ""
    length = number_format(len(text), force_grouping=True)
    return ngettext("%(length)s character", "%(length)s characters", len(text)) % {"length": length}


def _binary(data: bytes, type_: str) -> Cell:
    if not data:
        return Cell("", state="empty", type=type_)
    size = filesizeformat(len(data)) if len(data) > LONGEST_BINARY else ""
    return Cell(data[:LONGEST_BINARY].hex(), type=type_, size=size)
