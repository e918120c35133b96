"""ETags, which encode the Timestamp of an entity, and preconditions."""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from storage.domain.errors import InvalidInput, StorageError
from storage.domain.values.edm import read_datetime, write_datetime
from storage.domain.values.kinds import AccountKind

_WEAK = re.compile(r'W/"([^"]*)"')
_DATETIME = re.compile(r"datetime'([^']*)'")

NEVER: Final = -(2**63)  # ticks that no entity carries


class Precondition(NamedTuple):
    """If-Match: the Timestamp in ticks that the entity must have; None matches any."""

    expected: int | None


ANY: Final = Precondition(None)


def write_etag(ticks: int, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Build an ETag such as ``W/"datetime'2017-08-30T13%3A20%3A33.413914Z'"``, as clients rebuild it from Timestamp."""
    return f"W/\"datetime'{write_datetime(ticks, kind).replace(':', '%3A')}'\""


def read_if_match(value: str) -> Precondition:
    """Parse an If-Match header; raises InvalidInput.

    Any quoted weak tag is well formed, but only tags in this server's format can match.
    """
    if value == "*":
        return ANY
    weak = _WEAK.fullmatch(value)
    if weak is None:
        raise InvalidInput(
            f"The etag value '{value}' specified in one of the request headers is not valid. "
            "Please make sure only one etag value is specified and is valid."
        )
    instant = _DATETIME.fullmatch(unquote(weak[1]))
    if instant is None:
        return Precondition(NEVER)
    try:
        return Precondition(read_datetime(instant[1]))
    except StorageError:
        return Precondition(NEVER)
