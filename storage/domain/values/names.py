"""Valid names of accounts, tables and properties, and valid keys.

https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
"""

import re
from functools import lru_cache
from typing import Final

from storage.domain.errors import (
    InvalidResourceName,
    KeyValueTooLarge,
    OutOfRangeInput,
    PropertyNameInvalid,
    PropertyNameTooLong,
)
from storage.domain.values.edm import utf16_length

KEY_LENGTH_LIMIT: Final = 1024  # UTF-16 code units; the rule published last, older ones said 512 [doc]
RESERVED_TABLE_NAME: Final = "tables"
DEVELOPMENT_ACCOUNT: Final = "devstoreaccount1"  # of storage emulators; everybody knows its key

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_ANALYTICS = re.compile(r"\$Metrics[A-Z]{1,55}", re.IGNORECASE | re.ASCII)
_TABLE_CHARACTERS = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# lone surrogates are not characters; Azure's own list is / \ # ? and the control characters
_DISALLOWED_IN_KEYS = re.compile("[/\\\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def is_account_name(name: str) -> bool:
    return _ACCOUNT.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def fold_table_name(name: str) -> str:
    """Check a table name and return its lower-case form, which identifies the table."""
    if not _TABLE_CHARACTERS.fullmatch(name):
        if _ANALYTICS.fullmatch(name):
            return name.lower()
        # an empty name has no bad character, only a bad length
        raise InvalidResourceName if name else OutOfRangeInput(_LENGTH)
    if not 3 <= len(name) <= 63:
        raise OutOfRangeInput(_LENGTH)
    folded = name.lower()
    if folded == RESERVED_TABLE_NAME:
        raise InvalidResourceName
    return folded


def is_analytics_name(folded: str) -> bool:
    """Return whether a checked name belongs to a metrics table, which the service itself writes."""
    return folded.startswith("$")


_LENGTH: Final = "The specified resource name length is not within the permissible limits."


@lru_cache(maxsize=8192)
def check_property_name(name: str) -> None:
    """Require a letter or underscore, then letters, digits, connectors or combining characters, as in C#."""
    if utf16_length(name) > 255:
        raise PropertyNameTooLong
    if not name.isidentifier():
        raise PropertyNameInvalid


def check_key(property_name: str, key: str, *, limit: int = KEY_LENGTH_LIMIT) -> None:
    """Refuse a PartitionKey or RowKey that is too long or contains a disallowed character."""
    if len(key) > limit // 2 and utf16_length(key) > limit:
        raise KeyValueTooLarge
    if _DISALLOWED_IN_KEYS.search(key):
        raise OutOfRangeInput(f"The '{property_name}' parameter of value '{key}' is out of range.")
