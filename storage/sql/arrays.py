"""Arrays in PostgreSQL's binary format, which needs no escaping.

https://github.com/postgres/postgres/blob/master/src/backend/utils/adt/arrayfuncs.c (array_recv)
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

_TEXT: Final = 25  # the type's number in PostgreSQL
_JSONB: Final = 3802
_INTEGER: Final = 23
_BIGINT: Final = 20

_HEAD: Final = struct.Struct(">iiiii").pack  # dimensions, whether there are nulls, type, length, first index
_SIZE: Final = struct.Struct(">i").pack
_NULL: Final = _SIZE(-1)
_SIZED_INTEGER: Final = struct.Struct(">ii").pack
_SIZED_BIGINT: Final = struct.Struct(">iq").pack


def texts(items: Iterable[str | None]) -> bytes:
    """Encode a text[]."""
    values = [None if item is None else item.encode() for item in items]
    return _array(_TEXT, [_NULL if value is None else _SIZE(len(value)) + value for value in values])


def columns(rows: Sequence[Sequence[str | bytes | None]]) -> tuple[bytes, ...]:
    """Transpose the parameters of several statements into one text[] per parameter."""
    return tuple(texts(column) for column in zip(*rows, strict=True))


def documents(items: Iterable[str]) -> bytes:
    """Encode a jsonb[] from JSON texts."""
    values = [item.encode() for item in items]
    return _array(_JSONB, [b"%b\1%b" % (_SIZE(len(value) + 1), value) for value in values])


def integers(items: Iterable[int]) -> bytes:
    """Encode an integer[]."""
    return _array(_INTEGER, [_SIZED_INTEGER(4, item) for item in items])


def bigints(items: Iterable[int | None]) -> bytes:
    """Encode a bigint[]."""
    return _array(_BIGINT, [_NULL if item is None else _SIZED_BIGINT(8, item) for item in items])


def _array(type_: int, elements: Sequence[bytes]) -> bytes:
    return _HEAD(1, 1, type_, len(elements), 1) + b"".join(elements)
