"""Export entities as a file, piece by piece: what a query finds, some by their keys, or a whole table."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from storage.activity import activity
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity, read_stored
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.entities import entities, properties
from storage.history.past import Past
from storage.models import Table
from storage.tabular import parquet, writing
from storage.tabular.layout import FileRefused
from storage.tabular.writing import ExportFormat, UnexpectedProperty
from storage.transfer.subject import TransferVerb

PARQUET: Final = "parquet"
FORMATS: Final = (*(it.value for it in ExportFormat), PARQUET)
_PIECE: Final = 64 * 1024  # bytes of a ZIP file that are sent at once
MEDIA_TYPES: Final[Mapping[str, str]] = {
    **{it.value: type_ for it, type_ in writing.TYPES.items()},
    PARQUET: "application/vnd.apache.parquet",
}


class Scope(StrEnum):
    """The entities of a table that are exported."""

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


Progress = Callable[[int], None]


def _ignore(_: int) -> None:
    pass


def write(wanted: Export, progress: Progress = _ignore) -> Generator[bytes, None, int]:
    """Yield the pieces of a file and return the number of entities; recorded at the end, or where it was interrupted.

    ``progress`` is called with the number of entities of each page. Raises FileRefused if an entity gets a property
    during the export that the file has no column for.
    """
    count = 0

    def counted() -> Iterator[list[StoredEntity]]:
        nonlocal count
        for page in wanted.pages():
            count += len(page)
            progress(len(page))
            yield page

    is_whole = False
    try:
        if wanted.format == PARQUET:
            found = properties.types(wanted.table, wanted.query, wanted.past)
            yield from parquet.write(counted(), [parquet.Use(*use) for use in found])
        else:
            format_ = ExportFormat(wanted.format)
            names = property_names(wanted) if writing.has_columns(format_) else []
            texts = writing.write(format_, counted(), names, escapes_formulas=wanted.escapes_formulas)
            for text in texts:
                yield text.encode(errors="surrogatepass")
        is_whole = True
    except UnexpectedProperty:
        raise FileRefused(Reason.FILE_ROWS_CHANGED) from None
    finally:
        _record(wanted, count, is_whole=is_whole)
    return count


def write_zip(
    several: Iterable[Export], progress: Progress = _ignore
) -> Generator[bytes, None, dict[str, int]]:
    """Yield the pieces of a ZIP file with a file for each export; return the numbers of entities by table."""
    counts = {}
    sink = _Sink()
    with ZipFile(sink, "w", ZIP_DEFLATED) as archive:
        for wanted in several:
            # how large it gets is not known when it begins
            with archive.open(f"{wanted.table.name}.{wanted.format}", "w", force_zip64=True) as file:
                pieces = write(wanted, progress)
                try:
                    while True:
                        file.write(next(pieces))
                        if sink.size >= _PIECE:
                            yield sink.take()
                except StopIteration as end:
                    counts[wanted.table.name] = end.value
                finally:
                    pieces.close()
    yield sink.take()
    return counts


class _Sink:
    """A file that cannot be read or sought; what was written to it is taken piece by piece."""

    def __init__(self) -> None:
        self._content = bytearray()

    @property
    def size(self) -> int:
        return len(self._content)

    def write(self, data: bytes) -> int:
        self._content += data
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is kept back."""

    def close(self) -> None:
        """Do nothing: what was written can still be taken."""

    def take(self) -> bytes:
        taken, self._content = bytes(self._content), bytearray()
        return taken


def property_names(wanted: Export) -> list[str]:
    """Return all properties: those that are to come first, the others in the order of the first entities."""
    if wanted.scope is Scope.ROWS:
        found = _names(stored for page in wanted.pages() for stored in page)
    else:
        first = next(
            entities.all_pages(wanted.table, EntityQuery(filter=wanted.filter, top=100), wanted.past), []
        )
        everywhere = properties.names(wanted.table, wanted.query, wanted.past)
        found = list(dict.fromkeys((*_names(iter(first)), *everywhere)))
    known = frozenset(found)
    named = [name for name in wanted.columns if name in known]
    return list(dict.fromkeys((*named, *found)))


def _names(found: Iterator[StoredEntity]) -> list[str]:
    return list(dict.fromkeys(name for stored in found for name in read_stored(stored).properties))


def _record(wanted: Export, count: int, *, is_whole: bool) -> None:
    detail = {
        "scope": wanted.scope,
        "format": wanted.format,
        "filter": wanted.text,
        "rows": count,
        "is_whole": is_whole,
        **({} if wanted.past is None else {"as_of": str(wanted.past.moment)}),
    }
    activity.record(
        TransferVerb.EXPORT, wanted.by, account=wanted.table.account, table=wanted.table, detail=detail
    )
