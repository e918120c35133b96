"""Query options and continuation tokens: parsing and serialization."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Final

from storage.domain.errors import (
    InvalidInput,
    InvalidQueryParameterValue,
    NotImplemented,
    OutOfRangeQueryParameterValue,
    PartKind,
    PropertyNameTooLong,
    StorageError,
)
from storage.domain.filters.ast import Filter
from storage.domain.filters.parser import parse
from storage.domain.filters.query import PAGE_LIMIT, EntityQuery, Position, TableQuery
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import utf16_length
from storage.domain.values.names import PROPERTY_NAME_LIMIT

_SUPPORTED: Final = frozenset({"$filter", "$top", "$select", "$format"})
_SELECT_LIMIT: Final = 255
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def check_options(options: Mapping[str, str]) -> None:
    """Refuse unsupported system options and an invalid timeout."""
    for name in options:
        if name.startswith("$") and name not in _SUPPORTED:
            raise NotImplemented().within(PartKind.OPTION, name)
    if "timeout" in options:
        _check_timeout(options["timeout"])


def _check_timeout(value: str) -> None:
    """Validate the timeout in seconds; it has no effect, as no operation takes 30 seconds."""
    if not _INTEGER.fullmatch(value):
        raise InvalidQueryParameterValue(QueryParameterName="timeout", QueryParameterValue=value)
    if int(value) <= 0:
        raise OutOfRangeQueryParameterValue(QueryParameterName="timeout", QueryParameterValue=value)


def read_entity_query(
    options: Mapping[str, str], dialect: Dialect = dialects.STORAGE, *, annotations: bool
) -> EntityQuery:
    return EntityQuery(
        filter=_filter(options, dialect),
        select=read_select(options),
        top=_top(options),
        start=_cosmos_start(options) if dialect.is_cosmos else _start(options),
        annotations=annotations,
        kind=dialect.kind,
    )


def read_point_query(
    options: Mapping[str, str], dialect: Dialect = dialects.STORAGE, *, annotations: bool
) -> EntityQuery:
    """Parse the options of a point query, including a ``$filter`` that the entity must match."""
    return EntityQuery(
        filter=_filter(options, dialect),
        select=read_select(options),
        annotations=annotations,
        kind=dialect.kind,
    )


def read_table_query(options: Mapping[str, str], dialect: Dialect = dialects.STORAGE) -> TableQuery:
    token = options.get("NextTableName", "")
    return TableQuery(
        _filter(options, dialect), _top(options), read_token(token) if token else "", dialect.kind
    )


def _filter(options: Mapping[str, str], dialect: Dialect) -> Filter | None:
    text = options.get("$filter", "")
    try:
        return parse(text, dialect) if text else None
    except StorageError as error:
        error.within(PartKind.OPTION, "$filter")
        raise


def read_select(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the selected names without duplicates; None for all properties.

    A name that no property can have selects nothing: ``odata.etag`` would come twice, and Atom has no such element.
    """
    text = options.get("$select", "")
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not text.strip() or "*" in names:
        return None
    if len(names) > _SELECT_LIMIT or "" in names:
        raise InvalidInput().within(PartKind.OPTION, "$select")
    if any(utf16_length(name) > PROPERTY_NAME_LIMIT for name in names):
        raise PropertyNameTooLong().within(PartKind.OPTION, "$select")
    return tuple(filter(str.isidentifier, names))


def _top(options: Mapping[str, str]) -> int:
    text = options.get("$top")
    if not text:
        return PAGE_LIMIT
    if not _INTEGER.fullmatch(text) or not 0 <= int(text) <= PAGE_LIMIT:
        raise InvalidInput().within(PartKind.OPTION, "$top")
    return int(text)


# continuation: '1!<length>!<base64>', of characters that need no escape in a URL whatever the client does to it

_TO_TOKEN: Final = bytes.maketrans(b"+/=", b"._-")
_FROM_TOKEN: Final = bytes.maketrans(b"._-", b"+/=")
_NO_ROW: Final = "NA"  # Cosmos sends it as NextRowKey
_TOKEN = re.compile(r"1!([0-9]{1,5})!([A-Za-z0-9._-]*)")


def write_token(key: str) -> str:
    text = base64.b64encode(key.encode()).translate(_TO_TOKEN).decode()
    return f"1!{len(text)}!{text}"


def read_token(token: str) -> str:
    # Azure is said to take plain keys too. They are refused: a token that was cut off would be one, and have a query go
    # on elsewhere
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


def write_position(position: Position, dialect: Dialect) -> tuple[str, str]:
    """Return NextPartitionKey and NextRowKey; for Cosmos a single JSON token."""
    tokens = (write_token(position.partition_key), write_token(position.row_key))
    if not dialect.is_cosmos:
        return tokens
    token = {"token": "~".join(tokens), "range": {"min": "", "max": "FF"}}
    return json.dumps(token, separators=(",", ":")), _NO_ROW


def _cosmos_start(options: Mapping[str, str]) -> Position | None:
    text = options.get("NextPartitionKey", "")
    if not text:
        return None
    try:
        document = json.loads(text)
        # the service writes its own as a list from the second page on
        token = document[0] if isinstance(document, list) else document
        partition, row = token["token"].split("~")
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        raise InvalidInput from None
    return Position(read_token(partition), read_token(row))


def _start(options: Mapping[str, str]) -> Position | None:
    partition, row = options.get("NextPartitionKey", ""), options.get("NextRowKey", "")
    if partition:
        # clients that receive no NextRowKey, or an empty one, send it empty or not at all
        try:
            return Position(read_token(partition), read_token(row) if row else "")
        except StorageError as error:
            error.within(PartKind.OPTION, "NextPartitionKey")
            raise
    if row:
        raise InvalidInput().within(PartKind.OPTION, "NextRowKey")
    return None
