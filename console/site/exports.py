"""Lists as files to download: CSV for spreadsheets, NDJSON for programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from console.site.downloads import write_csv

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ExportFormat(Generic[Item]):
    extension: str
    content_type: str
    write: Callable[[Iterable[Item]], Iterator[str]]


def export_formats(
    columns: Sequence[str],
    csv_row: Callable[[Item], Mapping[str, Any]],
    ndjson_row: Callable[[Item], Mapping[str, Any]] | None = None,
) -> dict[str, ExportFormat[Item]]:
    """Return the formats by the name that a URL gives them."""

    def write_rows(items: Iterable[Item]) -> Iterator[str]:
        rows = map(csv_row, items)
        return write_csv(columns, ([row[name] for name in columns] for row in rows))

    def write_lines(items: Iterable[Item]) -> Iterator[str]:
        for item in items:
            # in ASCII: a String may hold what UTF-8 cannot
            yield json.dumps((ndjson_row or csv_row)(item)) + "\n"

    return {
        "csv": ExportFormat("csv", "text/csv; charset=utf-8", write_rows),
        "ndjson": ExportFormat("ndjson", "application/x-ndjson; charset=utf-8", write_lines),
    }
