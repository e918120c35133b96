"""Query options and continuation tokens ↔ the values of a query.

https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from storage.domain.errors import (
    InvalidInput,
    InvalidQueryParameterValue,
    NotImplemented,
    OutOfRangeQueryParameterValue,
)
from storage.domain.filters.ast import Filter
from storage.domain.filters.parser import parse
from storage.domain.filters.query import PAGE_LIMIT, EntityQuery, Position, TableQuery

_SUPPORTED: Final = frozenset({"$filter", "$top", "$select", "$format"})
_SELECT_LIMIT: Final = 255
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def check_options(options: Mapping[str, str]) -> None:
    """Refuse system options that the service does not implement, and an invalid timeout."""
    for name in options:
        if name.startswith("$") and name not in _SUPPORTED:
            raise NotImplemented
    if "timeout" in options:
        _check_timeout(options["timeout"])


def _check_timeout(value: str) -> None:
    """Seconds; the service silently reduces more than 30, and no operation here takes that long."""
    if not _INTEGER.fullmatch(value):
        raise InvalidQueryParameterValue(QueryParameterName="timeout", QueryParameterValue=value)
    if int(value) <= 0:
        raise OutOfRangeQueryParameterValue(QueryParameterName="timeout", QueryParameterValue=value)


def read_entity_query(options: Mapping[str, str], *, annotations: bool) -> EntityQuery:
    return EntityQuery(
        filter=_filter(options),
        select=read_select(options),
        top=_top(options),
        start=_start(options),
        annotations=annotations,
    )


def read_table_query(options: Mapping[str, str]) -> TableQuery:
    token = options.get("NextTableName", "")
    return TableQuery(filter=_filter(options), top=_top(options), start=read_token(token) if token else "")


def _filter(options: Mapping[str, str]) -> Filter | None:
    text = options.get("$filter", "")
    return parse(text) if text else None


def read_select(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """The selected names without repetitions; None for all."""
    text = options.get("$select", "")
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if names == ("",) or "*" in names:
        return None
    if len(names) > _SELECT_LIMIT or "" in names:
        raise InvalidInput
    return names


def _top(options: Mapping[str, str]) -> int:
    text = options.get("$top")
    if not text:
        return PAGE_LIMIT
    if not _INTEGER.fullmatch(text) or not 0 <= int(text) <= PAGE_LIMIT:
        raise InvalidInput
    return int(text)


# continuation: '1!<length>!<base64>', of characters that need no escape in a URL whatever the client does to it

_TO_TOKEN: Final = bytes.maketrans(b"+/=", b"._-")
_FROM_TOKEN: Final = bytes.maketrans(b"._-", b"+/=")
_TOKEN = re.compile(r"1!([0-9]{1,5})!([A-Za-z0-9._-]*)")


def write_token(key: str) -> str:
    text = base64.b64encode(key.encode()).translate(_TO_TOKEN).decode()
    return f"1!{len(text)}!{text}"


def read_token(token: str) -> str:
    match = _TOKEN.fullmatch(token)
    if match is None or int(match[1]) != len(match[2]):
        raise InvalidInput
    try:
        key = base64.b64decode(match[2].encode().translate(_FROM_TOKEN), validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidInput from None
    if "\0" in key:  # no key contains one, and PostgreSQL refuses it
        raise InvalidInput
    return key


def _start(options: Mapping[str, str]) -> Position | None:
    partition, row = options.get("NextPartitionKey", ""), options.get("NextRowKey", "")
    if partition:
        # clients that receive no NextRowKey, or an empty one, send it empty or not at all
        return Position(read_token(partition), read_token(row) if row else "")
    if row:
        raise InvalidInput
    return None
