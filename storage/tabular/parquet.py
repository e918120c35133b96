"""Parquet files by pyarrow, an optional dependency because of its size."""

import base64
import io
import itertools
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import IO, Any, Final, NamedTuple, cast

from storage.domain.entities.annotations import ODATA_TYPE, TYPE, find_roles, read_type_name
from storage.domain.entities.entity import KEY_PROPERTIES, StoredEntity, read_stored
from storage.domain.refusals import Reason
from storage.domain.values import edm
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, EdmValue
from storage.tabular.excel import write_duration
from storage.tabular.layout import FileRefused, name_columns, require_different, require_few_columns
from storage.tabular.report import ColumnUse, FileReport
from storage.tabular.writing import UnexpectedProperty, value_text

_ROWS: Final = 1000  # read at once
_BUFFER: Final = 256 * 1024  # bytes of a column
_GROUP_BYTES: Final = 16 << 20  # bytes of entities that are compressed together
_EDM: Final = b"edm"  # in the metadata of a column
_UUID: Final = "arrow.uuid"  # https://arrow.apache.org/docs/format/CanonicalExtensions.html
_NEAR: Final = 9_223_000_000_000_000  # microseconds around 1970; 64 bits hold their nanoseconds
_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_UNITS: Final = {"s": TICKS_PER_SECOND, "ms": 10_000, "us": 10}


def library() -> Any:
    """Return pyarrow with its Parquet module; raises FileRefused if it is missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise FileRefused(Reason.FILE_ROWS_NO_LIBRARY) from None
    return pyarrow


def read(stream: IO[bytes], report: FileReport) -> Iterator[dict[str, Any]]:
    """Yield rows as JSON members with annotations."""
    arrow = library()
    try:
        file = arrow.parquet.ParquetFile(stream, buffer_size=_BUFFER)  # else it holds whole groups of rows
        schema = file.schema_arrow
        require_few_columns(schema.names)
        names, unnamed = name_columns(schema.names)
        require_different(names)
        for name in unnamed:
            report.add_column(name, ColumnUse.UNNAMED, name)
        roles = find_roles(names)
        for name, described in roles.described.items():
            report.add_column(name, ColumnUse.TYPES, described)
        for name in roles.controls:
            report.add_column(name, ColumnUse.CONTROL)
        columns = [
            _Column(arrow, field, name, is_declared=name in roles.types)
            for field, name in zip(schema, names, strict=True)
        ]
        old_times = _find_old_times(file)
        far = _read_far_times(arrow, stream, old_times)
        for batch in file.iter_batches(batch_size=_ROWS):
            yield from _rows(batch, columns, next(far) if old_times else None)
    except arrow.ArrowException as error:
        raise FileRefused(Reason.FILE_ROWS_NOT_PARQUET, why=str(error).splitlines()[0]) from None


def _find_old_times(file: Any) -> list[str]:
    """Return the columns with 96-bit timestamps of older programs."""
    found = (file.schema.column(number) for number in range(len(file.schema)))
    return [column.path for column in found if column.physical_type == "INT96" and "." not in column.path]


def _read_far_times(arrow: Any, stream: IO[bytes], names: Sequence[str]) -> Iterator[Any]:
    """Yield batches of these columns in microseconds, as nanoseconds overflow before 1678 and after 2261."""
    file = arrow.parquet.ParquetFile(stream, buffer_size=_BUFFER, coerce_int96_timestamp_unit="us")
    yield from file.iter_batches(batch_size=_ROWS, columns=names)


def _rows(batch: Any, columns: Sequence["_Column"], far: Any) -> Iterator[dict[str, Any]]:
    names = [column.name for column in columns]
    constant = {column.name + ODATA_TYPE: column.type for column in columns if column.type is not None}
    values: list[list[Any]] = [column.read(batch.column(number)) for number, column in enumerate(columns)]
    for name in () if far is None else far.schema.names:
        micros = far.column(name).cast(columns[0].arrow.int64()).to_pylist()
        times = values[names.index(name)]
        for row, micro in enumerate(micros):
            if micro is not None and not -_NEAR < micro < _NEAR:
                times[row] = _write_time(micro * 10)
    for fields in zip(*values, strict=True):
        yield {**dict(zip(names, fields, strict=True)), **constant}


class _Column:
    """Reader of a Parquet column; ``type`` is None if JSON values or an adjacent type column determine it."""

    def __init__(self, arrow: Any, field: Any, name: str, *, is_declared: bool) -> None:
        self.name = name
        self.arrow = arrow
        kind, types = field.type, arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        self._is_uuid = getattr(kind, "extension_name", "") == _UUID
        if isinstance(kind, arrow.BaseExtensionType):
            kind = kind.storage_type
        self._kind = kind
        self.type: Edm | None = None
        if not is_declared:
            declared = (field.metadata or {}).get(_EDM, b"").decode(errors="replace")
            self.type = read_type_name(declared) or self._guess(types, kind)

    def _guess(self, types: Any, kind: Any) -> Edm | None:
        if self._is_uuid:
            return Edm.GUID
        if types.is_int64(kind) or types.is_uint32(kind) or types.is_uint64(kind):
            return Edm.INT64
        if types.is_integer(kind):
            return Edm.INT32
        if types.is_floating(kind):
            return Edm.DOUBLE
        if types.is_timestamp(kind) or types.is_date(kind):
            return Edm.DATETIME
        return Edm.BINARY if self._is_binary(kind) else None

    def _is_binary(self, kind: Any) -> bool:
        types = self.arrow.types
        tests = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
        return any(is_of_kind(kind) for is_of_kind in tests)

    def read(self, values: Any) -> list[Any]:
        arrow, types, kind = self.arrow, self.arrow.types, self._kind
        if types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if isinstance(values.type, arrow.BaseExtensionType):
            values = values.storage
        if types.is_timestamp(kind) or types.is_date(kind):
            return self._read_times(values)
        values_read: list[Any]
        if self._is_binary(kind):
            values_read = values.to_pylist()
            return [None if it is None else self._read_bytes(it) for it in values_read]
        if types.is_duration(kind):
            numbers = values.cast(arrow.int64()).to_pylist()
            unit = _NANOSECONDS[kind.unit]
            return [None if it is None else write_duration(it * unit) for it in numbers]
        if types.is_time(kind):
            values = values.cast(arrow.string())
        values_read = values.to_pylist()
        if types.is_decimal(kind):
            return [None if it is None else f"{it:f}" for it in values_read]
        if types.is_floating(kind):
            # as JSON has them
            return [
                it if it is None or math.isfinite(it) else value_text(EdmValue(Edm.DOUBLE, it))
                for it in values_read
            ]
        if types.is_nested(kind) or self.type is not None or types.is_boolean(kind):
            return values_read
        return [it if it is None or isinstance(it, str) else str(it) for it in values_read]

    def _read_bytes(self, value: bytes) -> str:
        return str(uuid.UUID(bytes=value)) if self._is_uuid else base64.b64encode(value).decode()

    def _read_times(self, values: Any) -> list[Any]:
        arrow, types = self.arrow, self.arrow.types
        if types.is_date(values.type):
            values = values.cast(arrow.timestamp("s" if types.is_date32(values.type) else "ms"))
        unit = values.type.unit
        numbers = values.cast(arrow.int64()).to_pylist()
        if unit == "ns":
            return [None if it is None else _write_nanoseconds(it) for it in numbers]
        ticks = _UNITS[unit]
        return [None if it is None else _write_time(it * ticks) for it in numbers]


def _write_nanoseconds(number: int) -> str:
    """Format a time in nanoseconds; the service can store it only if the last two digits are zeros."""
    ticks, rest = divmod(number, 100)
    if not rest:
        return _write_time(ticks)
    seconds, fraction = divmod(number, 1_000_000_000)
    return f"{edm.second_text(seconds)}.{fraction:09}Z"


def _write_time(ticks: int) -> str:
    try:
        return edm.write_datetime(ticks)
    except OverflowError:
        return str(ticks)  # rejected later, because it is not a time


# writing


class Use(NamedTuple):
    """Type of a property; for DateTime, whether all are whole microseconds and fit nanoseconds."""

    name: str
    type: Edm
    is_micro: bool = True
    is_near: bool = True


def write(pages: Iterable[list[StoredEntity]], uses: Iterable[Use]) -> Iterator[bytes]:
    """Yield a file piece by piece; ``uses`` are the types of all properties.

    Raises UnexpectedProperty for one that is not among them, FileRefused for text that is not Unicode.
    """
    arrow = library()
    columns = _write_columns(arrow, uses)
    keys = [(name, arrow.string()) for name in KEY_PROPERTIES] + [("Timestamp", arrow.timestamp("ns", "UTC"))]
    schema = arrow.schema([*itertools.starmap(arrow.field, keys), *(column.field for column in columns)])
    sink = _Sink()
    with arrow.parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _groups(pages):
            writer.write_table(_table(arrow, schema, columns, group))
            yield sink.take()
    yield sink.take()


def _groups(pages: Iterable[list[StoredEntity]]) -> Iterator[list[StoredEntity]]:
    """Group pages into Parquet row groups."""
    group: list[StoredEntity] = []
    size = 0
    for page in pages:
        group += page
        size += sum(len(stored.content) for stored in page)
        if size > _GROUP_BYTES:
            yield group
            group, size = [], 0
    yield group


class _WriteColumn(NamedTuple):
    """Parquet column to write, with the conversion of property values; ``name`` is the property."""

    field: Any
    name: str
    write: Callable[[EdmValue], Any]


def _write_columns(arrow: Any, uses: Iterable[Use]) -> list[_WriteColumn]:
    kinds: Mapping[Edm, Any] = {
        Edm.STRING: arrow.string(),
        Edm.BOOLEAN: arrow.bool_(),
        Edm.INT32: arrow.int32(),
        Edm.INT64: arrow.int64(),
        Edm.DOUBLE: arrow.float64(),
        Edm.GUID: arrow.string(),
        Edm.BINARY: arrow.binary(),
    }
    columns = []
    for name, same_name in groupby(sorted(uses), lambda use: use.name):
        first, *others = same_name
        if others:
            columns.append(_WriteColumn(arrow.field(name, arrow.string()), name, value_text))
            types = arrow.field(name + TYPE, arrow.string())
            columns.append(_WriteColumn(types, name, lambda value: value.type.short_name))
            continue
        is_time = first.type is Edm.DATETIME
        kind, write_value = _time_column(arrow, first) if is_time else (kinds[first.type], _write_as_is)
        field = arrow.field(name, kind, metadata={_EDM: first.type.value})
        columns.append(_WriteColumn(field, name, write_value))
    return columns


def _write_as_is(value: EdmValue) -> Any:
    return value.value


def _time_column(arrow: Any, use: Use) -> tuple[Any, Callable[[EdmValue], Any]]:
    """Return the lossless Parquet type of a time: microseconds, nanoseconds or text."""
    if use.is_micro:
        return arrow.timestamp("us", "UTC"), lambda value: cast("int", value.value) // 10
    if use.is_near:
        return arrow.timestamp("ns", "UTC"), lambda value: cast("int", value.value) * 100
    return arrow.string(), value_text


def _table(arrow: Any, schema: Any, columns: Sequence[_WriteColumn], group: Sequence[StoredEntity]) -> Any:
    entities = [read_stored(stored) for stored in group]
    known = {column.name for column in columns}
    if any(not known.issuperset(entity.properties) for entity in entities):
        raise UnexpectedProperty
    keys = zip(*(entity.key for entity in entities), strict=True) if entities else ([], [])
    times = [stored.timestamp * 100 for stored in group]
    arrays = [arrow.array(values, field.type) for values, field in zip((*keys, times), schema, strict=False)]
    for column in columns:
        values = [
            None if (value := entity.properties.get(column.name)) is None else column.write(value)
            for entity in entities
        ]
        try:
            arrays.append(arrow.array(values, column.field.type))
        except UnicodeEncodeError:
            raise FileRefused(Reason.FILE_ROWS_HALF_CHARACTER, property=column.name) from None
        except (arrow.ArrowException, TypeError, OverflowError):
            raise UnexpectedProperty from None  # a value of another type was written meanwhile
    return arrow.Table.from_arrays(arrays, schema=schema)


class _Sink(io.RawIOBase):
    """Write-only file whose content is taken piece by piece."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._content += data
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def take(self) -> bytes:
        taken, self._content = bytes(self._content), bytearray()
        return taken
