"""The options in the query string of a request, including the fields of a shared access signature."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_to_bytes

from storage.domain.errors import (
    AuthenticationFailed,
    InvalidInput,
    InvalidQueryParameterValue,
    InvalidUri,
)
from storage.domain.sas import SAS_NAMES

# known names in any letter case; other names are ignored
_TOLERANT: Final = {
    name.lower(): name
    for name in (
        "comp",
        "restype",
        "timeout",
        "NextTableName",
        "NextPartitionKey",
        "NextRowKey",
        "api-version",
        *SAS_NAMES,
    )
}
_COMMA: Final = re.compile("%2c", re.IGNORECASE)
# they select the operation, so the signed value must be the one that applies
_SIGNED: Final = frozenset({"comp", "restype"})


_CACHED: Final = 4096  # longer queries are not kept, so that a client cannot fill the memory


def read_options(query: bytes) -> Mapping[str, str]:
    """Parse a raw query string, in which a plus is a space."""
    return (_read_options if len(query) <= _CACHED else _read_options.__wrapped__)(query)


@lru_cache(maxsize=512)
def _read_options(query: bytes) -> Mapping[str, str]:
    options: dict[str, str] = {}
    if not query:
        return MappingProxyType(options)
    doubled = False
    for part in query.split(b"&"):
        raw_name, _, raw_value = part.partition(b"=")
        name = _decode(raw_name)
        name = _TOLERANT.get(name.lower(), name)
        if name in options:
            if name.startswith("$"):
                raise InvalidInput
            if name in _SIGNED:
                raise InvalidQueryParameterValue(
                    QueryParameterName=name, QueryParameterValue=_decode(raw_value)
                )
            doubled = doubled or name in SAS_NAMES
        options[name] = _decode(raw_value)
        if name == "$select":
            sent = raw_value.decode("latin-1")
            options["raw:$select"] = _COMMA.sub(",", sent) if options[name].strip() else ""
    if doubled and "sig" in options:
        # readers could differ on which value was signed
        raise AuthenticationFailed(AuthenticationErrorDetail="A parameter of the signature came twice.")
    return MappingProxyType(options)


def _decode(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise InvalidUri from None
