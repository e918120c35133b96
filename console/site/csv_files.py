"""CSV files for spreadsheets, one line at a time."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

# a spreadsheet would run what begins like this as a formula, and clients choose their own names
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The lines of a file with a header; lists and mappings are written as JSON, None as an empty field."""
    line = _Line()
    writer = csv.writer(line)
    writer.writerow(columns)
    yield line.text
    for row in rows:
        writer.writerow([_field(value) for value in row])
        yield line.text


class _Line:
    """The file that csv writes to: it keeps the last line only."""

    text = ""

    def write(self, line: str) -> None:
        self.text = line


def _field(value: Any) -> object:
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
