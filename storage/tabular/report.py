"""Report of differences between the table and the file: columns, values and blank rows, with reasons.

Everything in a file is a key or a property of the same name afterwards, belongs to a rejected row, or is named
here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, NamedTuple, Self

from storage.domain.values.numbers import counted

_MOST_ENTRIES: Final = 1000  # entries for columns, and for values; others are counted together
EXAMPLES: Final = 3


class ColumnUse(StrEnum):
    """Use of a column other than as the property of its name; the value is an English sentence."""

    KEY = "{column} is used as {target}."
    RENAMED = "{column} becomes the property {target}."
    UNNAMED = "A column without a name becomes the property {target}."
    TYPES = "{column} gives the types of {target}."
    TIMESTAMP = "{column} is left out: the service sets it."
    CONTROL = "{column} is left out: it is control information of a service."
    EMPTY = "{column} is left out: it has no name and no values."
    IGNORED = "{column} is left out: the mapping ignores it."
    NOT_MAPPED = "{column} is left out: the mapping does not list it."
    BESIDE_ROWS = "{column} is left out: it stands beside the rows, not in them."
    REJECTS = "{column} is left out: a file of rejected rows has added it."

    @property
    def code(self) -> str:
        """Return the machine-readable name, such as not-mapped."""
        return self.name.lower().replace("_", "-")


_TOGETHER: Final[Mapping[ColumnUse, str]] = {
    ColumnUse.TYPES: "{columns} give the types of other columns.",
    ColumnUse.CONTROL: "{columns} are left out: they are control information of a service.",
    ColumnUse.EMPTY: "{columns} are left out: they have no names and no values.",
    ColumnUse.IGNORED: "{columns} are left out: the mapping ignores them.",
    ColumnUse.NOT_MAPPED: "{columns} are left out: the mapping does not list them.",
    ColumnUse.BESIDE_ROWS: "{columns} are left out: they stand beside the rows, not in them.",
    ColumnUse.REJECTS: "{columns} are left out: a file of rejected rows has added them.",
}
_JOINED: Final = 10  # names in a sentence


def _join(names: Sequence[str]) -> str:
    """Join names for a sentence, abbreviating many."""
    if len(names) > _JOINED:
        return f"{', '.join(names[:_JOINED])} and {len(names) - _JOINED:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


class ColumnReport(NamedTuple):
    """Column not imported under its own name; ``target`` is a key, a property, or the column that it describes."""

    column: str
    use: ColumnUse
    target: str = ""

    @property
    def is_moved(self) -> bool:
        """Return whether the column's values are stored under another name."""
        return (
            self.use in (ColumnUse.KEY, ColumnUse.RENAMED, ColumnUse.UNNAMED) and self.column != self.target
        )

    @property
    def sentence(self) -> str:
        return self.use.value.format(column=self.shown, target=self.target)

    @property
    def shown(self) -> str:
        # a member of JSON may have the name "", and so have columns that are counted together
        return self.column or '""'


class ValueChange(StrEnum):
    """Change of values requested by the mapping, or a surprising type; the sentence is about ``{values}``."""

    UNSET = "{values} of {column} left out: the mapping says that they stand for no value"
    DROPPED = "{values} of {column} left out: not of its type"
    STRING = "{values} of {column} kept as String: not of its type"
    ROUNDED = "{values} of {column} rounded to what its type holds"
    KEY_REPLACED = "{values} of {column} with characters replaced that keys cannot have"
    OTHER_TYPE = "{values} of {column} with another type than its first number, as the column has no type"
    EMPTY = "{values} of {column} left out: empty, though a type is declared that has no empty value"

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(slots=True)
class ValueReport:
    """Values of a column changed in one way, with the first distinct ``examples``."""

    column: str
    change: ValueChange
    number: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        text = self.change.value.format(values=counted(self.number, "value"), column=self.column)
        examples = ", ".join(map(repr, self.examples))
        return f"{text}, such as {examples}." if examples else f"{text}."

    def add(self, number: int, examples: Sequence[str]) -> None:
        self.number += number
        for text in examples:
            if len(self.examples) < EXAMPLES and text not in self.examples:
                self.examples.append(text)


@dataclass(slots=True)
class FileReport:
    """Report on a file; ``blank_rows`` have no values and are skipped."""

    blank_rows: int = 0
    _columns: dict[tuple[str, ColumnUse], ColumnReport] = field(default_factory=dict)
    _values: dict[tuple[str, ValueChange], ValueReport] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.blank_rows or self._columns or self._values)

    @property
    def columns(self) -> list[ColumnReport]:
        """Return the columns grouped by use, in file order."""
        order = {use: number for number, use in enumerate(ColumnUse)}
        return sorted(self._columns.values(), key=lambda it: order[it.use])

    @property
    def values(self) -> list[ValueReport]:
        return sorted(self._values.values(), key=lambda it: -it.number)

    def sentences(self) -> Iterator[str]:
        """Yield the report as English sentences, grouping columns by use."""
        if self.blank_rows:
            yield f"{counted(self.blank_rows, 'blank row')} skipped."
        for use, its in groupby(self.columns, lambda it: it.use):
            columns = list(its)
            if use in _TOGETHER and len(columns) > 1:
                yield _TOGETHER[use].format(columns=_join([it.shown for it in columns]))
            else:
                yield from (it.sentence for it in columns)
        yield from (it.sentence for it in self.values)

    def add_column(self, column: str, use: ColumnUse, target: str = "") -> None:
        key = column, use
        if use is ColumnUse.EMPTY and (column, ColumnUse.UNNAMED) in self._columns:
            return
        if use is ColumnUse.UNNAMED:
            self._columns.pop((column, ColumnUse.EMPTY), None)
        if key not in self._columns and len(self._columns) >= _MOST_ENTRIES:
            key, target = ("", use), ""
        self._columns.setdefault(key, ColumnReport(key[0], use, target))

    def add_value(self, column: str, change: ValueChange, number: int, *examples: str) -> None:
        key = column, change
        if key not in self._values and len(self._values) >= _MOST_ENTRIES:
            key = "", change
        self._values.setdefault(key, ValueReport(*key)).add(number, examples)

    def add(self, other: "FileReport") -> None:
        """Add the report on further rows of the same file."""
        self.blank_rows += other.blank_rows
        for column in other._columns.values():
            self.add_column(*column)
        for value in other._values.values():
            self.add_value(value.column, value.change, value.number, *value.examples)

    def take(self) -> Self:
        """Return the report so far and start a new one."""
        taken = type(self)(self.blank_rows, dict(self._columns), dict(self._values))
        self.blank_rows = 0
        self._columns.clear()
        self._values.clear()
        return taken

    def dump(self) -> dict[str, Any]:
        """Serialize to JSON for ``load``."""
        return {
            "blank_rows": self.blank_rows,
            "columns": [[it.column, it.use.name, it.target] for it in self._columns.values()],
            "values": [[it.column, it.change.name, it.number, it.examples] for it in self._values.values()],
        }

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> Self:
        report = cls(stored.get("blank_rows", 0))
        # the rest is of a newer version
        for column, use, target in (it for it in stored.get("columns", ()) if it[1] in ColumnUse.__members__):
            report.add_column(column, ColumnUse[use], target)
        for column, change, number, examples in (
            it for it in stored.get("values", ()) if it[1] in ValueChange.__members__
        ):
            report.add_value(column, ValueChange[change], number, *examples)
        return report
