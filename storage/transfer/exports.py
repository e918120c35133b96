"""Exports of entities to a file, piece by piece: a query, selected keys, or a whole table."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from storage.activity import activity
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.entities.entity import property_names as names_of
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.entities import entities, properties
from storage.history.past import Past
from storage.models import Table
from storage.tabular import excel, parquet, writing
from storage.tabular.layout import FileRefused
from storage.tabular.writing import ExportFormat, UnexpectedProperty
from storage.transfer.subject import TransferVerb

PARQUET: Final = "parquet"
EXCEL: Final = "xlsx"
FORMATS: Final = (*(it.value for it in ExportFormat), PARQUET, EXCEL)
# the optional libraries of formats, and what is said where they are missing
LIBRARIES: Final = {
    PARQUET: ("pyarrow", Reason.FILE_ROWS_NO_LIBRARY),
    EXCEL: ("openpyxl", Reason.FILE_ROWS_NO_EXCEL),
}
_PIECE: Final = 64 * 1024  # bytes of a ZIP file that are sent at once
MEDIA_TYPES: Final[Mapping[str, str]] = {
    **{it.value: type_ for it, type_ in writing.TYPES.items()},
    PARQUET: "application/vnd.apache.parquet",
    EXCEL: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class Scope(StrEnum):
    """Entities of a table that are exported."""

    ROWS = "rows"  # those with some keys
    QUERY = "query"  # everything a filter matches
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Export:
    """An export of entities of a table."""

    table: Table
    format: str
    by: Actor
    scope: Scope = Scope.TABLE
    keys: Sequence[EntityKey] = ()  # in the scope of rows
    filter: Filter | None = None  # in the scope of a query
    text: str = ""  # the filter, as it was typed
    columns: Sequence[str] = ()  # properties that come first in a file that has columns
    past: Past | None = None
    escapes_formulas: bool = False

    @property
    def query(self) -> EntityQuery:
        return EntityQuery(filter=self.filter)

    def pages(self) -> Iterator[list[StoredEntity]]:
        if self.scope is Scope.ROWS:
            return entities.get_many_paged(self.table, self.keys, self.past)
        return entities.all_pages(self.table, self.query, self.past)


def missing_library(format_: str) -> FileRefused | None:
    """Return the refusal of a format whose optional library is missing, without loading it; otherwise None."""
    module, reason = LIBRARIES.get(format_, ("", None))
    return None if reason is None or find_spec(module) is not None else FileRefused(reason)


def require_library(format_: str) -> None:
    """Raise FileRefused if the optional library of a format is missing."""
    missing = missing_library(format_)
    if missing is not None:
        raise missing


Progress = Callable[[int], None]


def _ignore(_: int) -> None:
    pass


def write(export: Export, progress: Progress = _ignore) -> Generator[bytes, None, int]:
    """Yield the pieces of a file and return the number of entities; records the export when it ends.

    ``progress`` is called with the number of entities of each page. Raises FileRefused if an entity gets a
    property during the export that the file has no column for.
    """
    count = 0

    def counted() -> Iterator[list[StoredEntity]]:
        nonlocal count
        for page in export.pages():
            count += len(page)
            progress(len(page))
            yield page

    is_whole = False
    try:
        if export.format == PARQUET:
            column_types = properties.types(export.table, export.query, export.past)
            yield from parquet.write(counted(), [parquet.Use(*use) for use in column_types])
        elif export.format == EXCEL:
            column_types = properties.types(export.table, export.query, export.past)
            yield from excel.write(counted(), property_names(export), excel.group_uses(column_types))
        else:
            format_ = ExportFormat(export.format)
            names = property_names(export) if writing.has_columns(format_) else []
            texts = writing.write(format_, counted(), names, escapes_formulas=export.escapes_formulas)
            for text in texts:
                yield text.encode(errors="surrogatepass")
        is_whole = True
    except UnexpectedProperty:
        raise FileRefused(Reason.FILE_ROWS_CHANGED) from None
    finally:
        _record(export, count, is_whole=is_whole)
    return count


def start(export: Export) -> Generator[bytes, None, object]:
    """Return the pieces of a file; raises the refusals that come before its first piece.

    A file of Excel is whole by then, and one of Parquet has 16 MiB of entities: a later refusal ends the download.
    """
    pieces = write(export)
    return _resume(next(pieces), pieces) if export.format in (EXCEL, PARQUET) else pieces


def _resume(first: bytes, pieces: Generator[bytes, None, int]) -> Generator[bytes, None, int]:
    with closing(pieces):
        yield first
        return (yield from pieces)


def write_zip(
    several: Iterable[Export], progress: Progress = _ignore
) -> Generator[bytes, None, dict[str, int]]:
    """Yield the pieces of a ZIP archive with a file per export; return the number of entities by table."""
    counts = {}
    sink = _Sink()
    with ZipFile(sink, "w", ZIP_DEFLATED) as archive:
        for export in several:
            # how large it gets is not known when it begins
            with archive.open(f"{export.table.name}.{export.format}", "w", force_zip64=True) as file:
                pieces = write(export, progress)
                try:
                    while True:
                        file.write(next(pieces))
                        if sink.size >= _PIECE:
                            yield sink.take()
                except StopIteration as end:
                    counts[export.table.name] = end.value
                finally:
                    pieces.close()
    yield sink.take()
    return counts


class _Sink:
    """Write-only file whose content is taken piece by piece."""

    def __init__(self) -> None:
        self._content = bytearray()

    @property
    def size(self) -> int:
        return len(self._content)

    def write(self, data: bytes) -> int:
        self._content += data
        return len(data)

    def flush(self) -> None:
        """Do nothing, as nothing is buffered."""

    def close(self) -> None:
        """Do nothing, as written content can still be taken."""

    def take(self) -> bytes:
        taken, self._content = bytes(self._content), bytearray()
        return taken


def property_names(export: Export) -> list[str]:
    """Return all properties: requested ones first, others in order of appearance."""
    if export.scope is Scope.ROWS:
        names = names_of(stored for page in export.pages() for stored in page)
    else:
        first = next(
            entities.all_pages(export.table, EntityQuery(filter=export.filter, top=100), export.past), []
        )
        everywhere = properties.names(export.table, export.query, export.past)
        names = list(dict.fromkeys((*names_of(first), *everywhere)))
    known = frozenset(names)
    named = [name for name in export.columns if name in known]
    return list(dict.fromkeys((*named, *names)))


def _record(export: Export, count: int, *, is_whole: bool) -> None:
    detail = {
        "scope": export.scope,
        "format": export.format,
        "filter": export.text,
        "rows": count,
        "is_whole": is_whole,
        **({} if export.past is None else {"as_of": str(export.past.moment)}),
    }
    activity.record(
        TransferVerb.EXPORT, export.by, account=export.table.account, table=export.table, detail=detail
    )
