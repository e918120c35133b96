"""Addresses of requests as the request log keeps them: the resource, or the form of an invalid path."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from storage.domain.errors import InvalidInput, MethodNotAllowed, NotImplemented, StorageError
from storage.domain.requests.cleaning import LEFT_OUT, clean_table
from storage.domain.requests.routes import Address, Target, TargetKind, resolve_target
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name, is_account_name

_SHOWN: Final = 4  # segments
_KEY: Final = f"(PartitionKey='{LEFT_OUT}',RowKey='{LEFT_OUT}')"
_PREDICATE: Final = f"({LEFT_OUT})"
_OF_THE_SERVICE: Final = {"tables": "Tables", "$batch": "$batch", "$metadata": "$metadata"}
_EMPTY: Final = re.compile(rb"\(\s*\)")


class AddressRule(StrEnum):
    """Rule that an address violates."""

    ENCODING = "encoding"  # it is percent-encoded UTF-8
    TABLE_NAME = "table-name"  # letters and digits
    KEY = "key"  # PartitionKey='…',RowKey='…' in parentheses, with these quotation marks
    DEPTH = "depth"  # nothing lies below a table or an entity


class AddressFault(NamedTuple):
    """Reason why an address is invalid; its fields are described in the documentation of the API."""

    rule: Annotated[AddressRule, "That the address breaks."]
    segments: Annotated[int, "Of the path below the account."]
    length: Annotated[int, "Of the path below the account, in characters as sent."]


@dataclass(frozen=True, slots=True)
class KeptAddress:
    """Logged address in three parts; the table ``name`` is shown if it ``is_known`` or if such a table exists."""

    start: str
    name: str
    end: str
    is_known: bool = True
    folded: str = ""  # the name as it identifies a table
    fault: AddressFault | None = None

    def text(self, *, is_known: bool = False) -> str:
        """Return the address; ``is_known`` tells whether the table exists, otherwise its name may be hidden."""
        is_shown = self.is_known or (is_known and self.name)
        return f"{self.start}{self.name if is_shown else LEFT_OUT}{self.end}"


UNKNOWN: Final = KeptAddress(f"/{LEFT_OUT}", "", "")


def keep_address(address: Address, method: str, kind: AccountKind) -> KeptAddress:
    """Describe the address of a request for the log, without keys."""
    start = "/" if address.host_style else f"/{_keep_account(address)}/"
    path = address.rest.strip(b"/")
    if not path:
        return KeptAddress(start, "", "")
    try:
        target: Target | None = resolve_target(path, method, "", kind)
    except (MethodNotAllowed, NotImplemented):
        target = None
    except StorageError as error:
        return _describe(start, path, error, kind)
    if target is None:
        return _keep_nested(start, path, kind)
    if target.kind is TargetKind.BATCH:
        return KeptAddress(start, "", "$batch")
    if target.kind is TargetKind.TABLES:
        return KeptAddress(start, "", f"Tables{_read_empty_predicate(path)}")
    if target.kind is TargetKind.TABLE:
        return _keep_name(f"{start}Tables('", target.table, "')", path, kind)
    if b"/" in path:
        return _keep_nested(start, path, kind)
    end = _KEY if target.kind is TargetKind.ENTITY else _read_empty_predicate(path)
    return _keep_name(start, target.table, end, path, kind)


def _keep_account(address: Address) -> str:
    name = address.base.rpartition("/")[2]
    return name if is_account_name(name.removesuffix("-secondary")) else LEFT_OUT


def _read_empty_predicate(path: bytes) -> str:
    return "()" if _EMPTY.search(unquote_to_bytes(path[-16:])) else ""


def _keep_name(start: str, name: str, end: str, path: bytes, kind: AccountKind) -> KeptAddress:
    """Keep a table name if it is valid; nearly every text is valid in Cosmos accounts, so these need more care."""
    try:
        folded = fold_table_name(name, kind)
    except StorageError:
        fault = AddressFault(AddressRule.TABLE_NAME, 1, len(path))
        return KeptAddress(start, "", end, is_known=False, fault=fault)
    return KeptAddress(start, name, end, is_known=bool(clean_table(name, kind)), folded=folded)


def _keep_nested(start: str, path: bytes, kind: AccountKind) -> KeptAddress:
    """Keep ``people/Tables``, as sent by SDKs that were given a table URL, or ``$metadata``."""
    first, slash, second = path.partition(b"/")
    if not slash:
        return KeptAddress(start, "", "$metadata")
    end = f"/Tables{_PREDICATE if b'(' in second or b'%28' in second else ''}"
    return _keep_name(start, unquote_to_bytes(first).decode(), end, path, kind)


def _describe(start: str, path: bytes, error: StorageError, kind: AccountKind) -> KeptAddress:
    segments = path.split(b"/")
    fault = AddressFault(_broken_rule(segments, error), len(segments), len(path))
    first = unquote_to_bytes(segments[0]).decode(errors="replace")
    name, parenthesis, _ = first.partition("(")
    own = _OF_THE_SERVICE.get(name.lower())
    end = f"{own or ''}{_PREDICATE if parenthesis else ''}{f'/{LEFT_OUT}' * min(len(segments) - 1, _SHOWN)}"
    if own is not None:
        return KeptAddress(start, "", end, fault=fault)
    try:
        folded = fold_table_name(name, kind)
    except StorageError:
        folded = name = ""
    return KeptAddress(start, name, end, is_known=False, folded=folded, fault=fault)


def _broken_rule(segments: list[bytes], error: StorageError) -> AddressRule:
    try:
        for segment in segments:
            unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        return AddressRule.ENCODING
    # a slash in parentheses is one in a key, which has to be percent-encoded
    if isinstance(error, InvalidInput) and b")" not in unquote_to_bytes(segments[0]):
        return AddressRule.KEY
    return AddressRule.KEY if len(segments) == 1 else AddressRule.DEPTH
