"""Validation of account, table and property names, and of keys."""

import re
from functools import lru_cache
from typing import Final

from storage.domain.errors import (
    BadRequest,
    InvalidResourceName,
    KeyValueTooLarge,
    OutOfRangeInput,
    PartKind,
    PropertiesNeedValue,
    PropertyNameInvalid,
    PropertyNameTooLong,
)
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import utf16_length
from storage.domain.values.kinds import AccountKind

PROPERTY_NAME_LIMIT: Final = 255  # UTF-16 code units
COSMOS_KEY_LIMITS: Final = {"PartitionKey": 2048, "RowKey": 255}  # bytes
RESERVED_TABLE_NAME: Final = "tables"
DEVELOPMENT_ACCOUNT: Final = "devstoreaccount1"  # account of storage emulators; everybody knows its key

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
# tables of Storage Analytics, which Azure retired on 2024-01-09; its clients still ask for them
_METRICS_TABLE = re.compile(r"\$Metrics[A-Z]{1,55}", re.IGNORECASE | re.ASCII)
_TABLE_CHARACTERS = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# PostgreSQL holds no U+0000, and no URL a lone surrogate
_DISALLOWED_IN_COSMOS_TABLES = re.compile("[/\\\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")
TABLE_NAME_LIMIT: Final = 254  # characters, in Cosmos accounts [wire]; the documentation says 255
# lone surrogates are not characters; Azure's own list is / \ # ? and the control characters
_DISALLOWED_IN_KEYS = re.compile("[/\\\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def is_account_name(name: str) -> bool:
    return _ACCOUNT.fullmatch(name) is not None


def fold_table_name(name: str, kind: AccountKind) -> str:
    """Validate a table name and return its identity: the lower-case form, or the name itself in Cosmos accounts.

    Names of metrics tables are valid in storage accounts, but ``fold_new_table_name`` refuses them.
    """
    return _fold_cosmos_name(name) if kind is AccountKind.COSMOS else _fold_storage_name(name)


def fold_new_table_name(name: str, kind: AccountKind) -> str:
    """Validate the name of a new table like ``fold_table_name``, refusing metrics tables as well."""
    folded = fold_table_name(name, kind)
    if folded.startswith("$"):
        raise InvalidResourceName
    return folded


@lru_cache(maxsize=4096)
def _fold_cosmos_name(name: str) -> str:
    if not 0 < utf16_length(name) <= TABLE_NAME_LIMIT:
        raise BadRequest
    wrong = _DISALLOWED_IN_COSMOS_TABLES.search(name)
    # $batch and the like are paths of the service itself, and so is Tables [inferred]
    if wrong or name.startswith("$") or name.lower() == RESERVED_TABLE_NAME:
        character = wrong[0] if wrong else name[0]
        raise InvalidResourceName(f"The table name contains an invalid character {character}.")
    if name.endswith(" "):
        raise InvalidResourceName("Table name cannot end with a space.")
    return name


@lru_cache(maxsize=4096)
def _fold_storage_name(name: str) -> str:
    if not _TABLE_CHARACTERS.fullmatch(name):
        if _METRICS_TABLE.fullmatch(name):
            return name.lower()
        # an empty name has no bad character, only a bad length
        raise InvalidResourceName if name else OutOfRangeInput(_LENGTH)
    if not 3 <= len(name) <= 63:
        raise OutOfRangeInput(_LENGTH)
    folded = name.lower()
    if folded == RESERVED_TABLE_NAME:
        raise InvalidResourceName
    return folded


_LENGTH: Final = "The specified resource name length is not within the permissible limits."


@lru_cache(maxsize=8192)
def check_property_name(name: str) -> None:
    """Validate a property name: a letter or underscore, then letters, digits, connectors or combining characters."""
    if utf16_length(name) > PROPERTY_NAME_LIMIT:
        raise PropertyNameTooLong
    if not name.isidentifier():
        raise PropertyNameInvalid


def check_entity_key(partition_key: str, row_key: str, dialect: Dialect = dialects.STORAGE) -> None:
    """Validate the keys of an entity; faster than two calls of check_key."""
    half = dialect.key_limit // 2
    is_surely_short = len(partition_key) <= half and len(row_key) <= half
    if (
        is_surely_short
        and dialect.kind is AccountKind.STORAGE
        and not _DISALLOWED_IN_KEYS.search(partition_key + row_key)
    ):
        return
    check_key("PartitionKey", partition_key, dialect)
    check_key("RowKey", row_key, dialect)


def check_key(property_name: str, key: str, dialect: Dialect = dialects.STORAGE) -> None:
    """Validate a key; raises an error if it is too long or contains a disallowed character."""
    limit = dialect.key_limit
    if dialect.is_cosmos:
        if not key:
            raise PropertiesNeedValue().within(PartKind.PROPERTY, property_name)
        if len(key.encode(errors="replace")) > COSMOS_KEY_LIMITS[property_name]:
            raise KeyValueTooLarge().within(PartKind.PROPERTY, property_name)
    elif len(key) > limit // 2 and utf16_length(key) > limit:
        raise KeyValueTooLarge().within(PartKind.PROPERTY, property_name)
    if _DISALLOWED_IN_KEYS.search(key):
        text = f"The '{property_name}' parameter of value '{key}' is out of range."
        raise OutOfRangeInput(text).within(PartKind.PROPERTY, property_name)
