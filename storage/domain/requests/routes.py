"""Routing: from the raw path of a request to the account, the resource and the operation."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from storage.domain.access import grants
from storage.domain.access.grants import Grant, Operation
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import (
    AuthenticationFailed,
    HostInformationNotPresent,
    InvalidInput,
    InvalidUri,
    MediaTypeNotSupported,
    MethodNotAllowed,
    NotImplemented,
)
from storage.domain.values.kinds import AccountKind

SECONDARY: Final = "-secondary"
BAD_PREDICATE: Final = "Bad Request - Error in query syntax."


class TargetKind(Enum):
    SERVICE = auto()
    TABLES = auto()
    TABLE = auto()
    ENTITIES = auto()
    ENTITY = auto()
    UNNAMED = auto()  # an entity by a key without names
    BATCH = auto()


class Target(NamedTuple):
    """Resource of an account; ``table`` is the name as sent, unchecked, ``key`` is only set for ENTITY."""

    kind: TargetKind
    table: str = ""
    key: EntityKey = EntityKey("", "")


class Address(NamedTuple):
    """Request address split into ``base``, the service URI as the client wrote it, and ``rest``, the raw path below."""

    account: str
    secondary: bool
    host_style: bool
    base: str
    rest: bytes


_HOST = re.compile(rb"[A-Za-z0-9._\-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")


_HOST_LIMIT: Final = 255 + len(":65535")  # characters; every link of an answer repeats the host


@lru_cache(maxsize=256)
def is_host(host: bytes) -> bool:
    """Return whether a Host header is a single name or address with optional port."""
    return len(host) <= _HOST_LIMIT and _HOST.fullmatch(host) is not None


def resolve_address(
    path: bytes,
    host: bytes | None,
    scheme: str,
    suffixes: Sequence[str],
    authorization: bytes | None = None,
    query: bytes = b"",
) -> Address:
    """Resolve account and service URI: host style if the host ends in one of the suffixes, otherwise path style.

    ``authorization`` is the Authorization header. With Shared Key it names the account where the path has
    only a table: Azure.Data.Tables leaves out the account for every host name but localhost, such as a
    container's.
    """
    if not host:
        raise HostInformationNotPresent
    origin, by_host = _origin(host, scheme, tuple(suffixes))
    if by_host is not None:
        account, secondary = _primary(by_host)
        return Address(account, secondary, True, origin, path)
    first, slash, rest = path.lstrip(b"/").partition(b"/")
    sent = _decode(first)
    account, secondary = _primary(sent)
    is_service = first and b"restype=service" in query  # then nothing but an account is in the path
    if not rest and not is_service and _is_foreign_name(host):
        signer = _read_signer(authorization)
        if signer not in (None, account):
            return Address(str(signer), _is_secondary(host), True, origin, path)
    if not first:
        raise InvalidUri
    rest = slash + rest
    if secondary and rest.startswith(b"/%b/" % account.encode()):
        # an SDK made for host style puts the secondary before the whole path; nothing lies below a table
        rest = rest[len(account) + 1 :]
    return Address(account, secondary or _is_secondary(host), False, f"{origin}/{sent}", rest)


@lru_cache(maxsize=256)
def _origin(host: bytes, scheme: str, suffixes: tuple[str, ...]) -> tuple[str, str | None]:
    """Return scheme and authority, and the account if it is in the host name."""
    if not is_host(host):
        raise HostInformationNotPresent
    text = host.decode("ascii")
    name = text.partition(":")[0].lower().removesuffix(".") if not text.startswith("[") else text
    for suffix in suffixes:
        if name.endswith("." + suffix):
            return f"{scheme}://{text}", name[: -len(suffix) - 1]
    return f"{scheme}://{text}", None


def _primary(account: str) -> tuple[str, bool]:
    if account.endswith(SECONDARY):
        return account[: -len(SECONDARY)], True
    return account, False


def _is_secondary(host: bytes) -> bool:
    """Return whether the first label of a host ends in the suffix of secondary endpoints, ``-secondary``."""
    label, dot, _ = host.lower().partition(b":")[0].partition(b".")
    return bool(dot) and label.endswith(b"-secondary")


def _read_signer(authorization: bytes | None) -> str | None:
    """Return the account in a Shared Key Authorization header; None otherwise."""
    match = _SIGNED.match(authorization or b"")
    return match[1].decode() if match else None


_SIGNED: Final = re.compile(rb"SharedKey(?:Lite)? ([a-z0-9]{3,24}):")


def _is_foreign_name(host: bytes) -> bool:
    """Return whether a host is a name other than localhost, not an IP address."""
    return not host.startswith((b"[", b"localhost")) and not _IPV4.match(host)


_IPV4: Final = re.compile(rb"[0-9.]+(?::|\Z)")


def _decode(raw: bytes) -> str:
    """Percent-decode a path segment, leaving plus signs."""
    try:
        return (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
    except UnicodeDecodeError:
        raise InvalidUri from None


def inner_path(uri: bytes, known: Address) -> bytes:
    """Return the path below the account of a URI in a batch, which may be absolute or relative."""
    uri = uri.partition(b"?")[0]
    scheme, separator, rest = uri.partition(b"://")
    if separator and scheme.lower() in (b"http", b"https"):
        uri = b"/" + rest.partition(b"/")[2]
    path = uri.lstrip(b"/")
    if known.host_style:
        return path
    first, slash, below = path.partition(b"/")
    # a table may have the account's name: then nothing follows
    if slash and _primary(_decode(first))[0] == known.account:
        return below
    return path


def resolve_target(path: bytes, method: str, account: str, kind: AccountKind = AccountKind.STORAGE) -> Target:
    """Resolve the raw path below the account to a resource."""
    path = path.strip(b"/")
    if not path:
        return Target(TargetKind.SERVICE)
    if b"/" in path:
        if kind is AccountKind.COSMOS:
            raise InvalidUri
        return _nested(path, method)
    segment = _decode(path)
    if kind is AccountKind.COSMOS:
        match = _COSMOS_SEGMENT.fullmatch(segment)
        name, parenthesis, predicate = match.groups() if match else (segment, "", "")
    else:
        name, parenthesis, predicate = segment.partition("(")
    if not parenthesis:
        if name == "$batch":
            return Target(TargetKind.BATCH)
        if name == "$metadata":  # responses name it as a context, but it is not served
            raise NotImplemented
        return Target(TargetKind.TABLES) if name.lower() == "tables" else Target(TargetKind.ENTITIES, name)
    if name.lower() == "tables":
        return _table(predicate)
    key = _key(f"{account}.{name}", predicate)
    return Target(TargetKind.ENTITIES, name) if key is None else Target(TargetKind.ENTITY, name, key)


def key_count_error(resource: str) -> InvalidInput:
    """Build the error for a wrong number of keys; ``resource`` is account.table."""
    return InvalidInput(
        "The number of keys specified in the URI does not match number of key properties"
        f" for the resource '{resource}'."
    )


def _nested(path: bytes, method: str) -> Target:
    """Resolve a path below a table, as sent by SDKs that were given a table URL in place of the service URL."""
    first, _, second = path.partition(b"/")
    if b"(" in first or b"%28" in first:
        raise InvalidInput(BAD_PREDICATE)  # a slash inside a key
    table, below = _decode(first), _decode(second)
    if below == "$batch":
        raise MediaTypeNotSupported
    name, parenthesis, _ = below.partition("(")
    if name.lower() != "tables":
        raise InvalidUri
    if parenthesis and method == "DELETE":
        return Target(TargetKind.UNNAMED, table)
    if method == "POST":
        return Target(TargetKind.ENTITIES, table)
    if method == "GET":
        raise NotImplemented
    raise MethodNotAllowed


# the name of a table may contain parentheses, but no predicate follows them then
_COSMOS_SEGMENT = re.compile(r"(.*?)(\()(\s*(?:(?:(?:PartitionKey|RowKey)\s*=|').*)?\))", re.DOTALL)
_STRING = r"'((?:[^']++|'')*+)'"
_USUAL_KEY = re.compile(rf"PartitionKey={_STRING},RowKey={_STRING}\)", re.DOTALL)
_NAMED_KEY = re.compile(rf"\s*(PartitionKey|RowKey)\s*=\s*{_STRING}\s*(,|\)\Z)", re.DOTALL)
_UNNAMED_KEY = re.compile(rf"\s*{_STRING}\s*\)", re.DOTALL)


def _table(predicate: str) -> Target:
    if predicate.strip() == ")":
        return Target(TargetKind.TABLES)
    name = _UNNAMED_KEY.fullmatch(predicate)
    if name is None:
        raise InvalidInput(BAD_PREDICATE)
    return Target(TargetKind.TABLE, name[1].replace("''", "'"))


def _key(resource: str, predicate: str) -> EntityKey | None:
    """Parse the key in a predicate; None for ``()``."""
    usual = _USUAL_KEY.fullmatch(predicate)
    if usual is not None:
        return EntityKey(usual[1].replace("''", "'"), usual[2].replace("''", "'"))
    if predicate.strip() == ")":
        return None
    return _unusual_key(resource, predicate)


def predicate_of(uri: bytes) -> str | None:
    """Return the decoded text between the parentheses of the URI of an entity; None if it has none."""
    path = uri.partition(b"?")[0]
    try:
        predicate = _decode(path).partition("(")[2]
    except InvalidUri:
        return None
    return predicate.removesuffix(")") or None


def key_of(uri: bytes) -> EntityKey | None:
    """Return the key in the URI of an entity of a known table; None if the URI needs full resolution."""
    predicate = uri.partition(b"(")[2]
    match = _USUAL_KEY.fullmatch(_decode(predicate))
    if match is None or b"/" in predicate or b"?" in predicate:
        return None
    return EntityKey(match[1].replace("''", "'"), match[2].replace("''", "'"))


def _unusual_key(resource: str, predicate: str) -> EntityKey:
    """Parse a key with its parts in any order and with spaces."""
    if _UNNAMED_KEY.fullmatch(predicate):
        raise key_count_error(resource)
    keys: dict[str, str] = {}
    position = 0
    while position < len(predicate):
        part = _NAMED_KEY.match(predicate, position)
        if part is None or part[1] in keys:
            raise InvalidInput(BAD_PREDICATE)
        keys[part[1]] = part[2].replace("''", "'")
        position = part.end()
    if len(keys) != 2 or not predicate.rstrip().endswith(")"):
        raise InvalidInput(BAD_PREDICATE)
    return EntityKey(keys["PartitionKey"], keys["RowKey"])


def resolve_operation(
    target: Target, method: str, options: Mapping[str, str], *, conditional: bool
) -> Operation | None:
    """Resolve method and options to an operation, or None; ``conditional`` means that If-Match was sent."""
    if "comp" in options or "restype" in options:
        return _XML_OPERATIONS.get((target.kind, method, options.get("comp", "")))
    if target.kind is TargetKind.ENTITY and method in ("PUT", "MERGE", "PATCH"):
        return _WRITES[method == "PUT", conditional]
    return _OPERATIONS.get((target.kind, method))


def check_target(grant: Grant, operation: Operation | None, target: Target) -> None:
    """Check that the grant covers an operation; None stands for an unknown operation, which is refused later."""
    if grant.kind is grants.GrantKind.OWNER:
        return
    table = target.table.lower() if target.kind in _OF_A_TABLE else None
    if grant.table is not None and table not in (None, grant.table):
        # the table name is signed, so for another table the signature is invalid
        raise AuthenticationFailed(AuthenticationErrorDetail="The signature is for another table.")
    if operation is not None:
        grant.check(operation, table)


_OF_A_TABLE: Final = (TargetKind.ENTITIES, TargetKind.ENTITY, TargetKind.UNNAMED)
_OPERATIONS: Final = {
    (TargetKind.TABLES, "GET"): Operation.QUERY_TABLES,
    (TargetKind.TABLES, "POST"): Operation.CREATE_TABLE,
    (TargetKind.TABLE, "GET"): Operation.QUERY_TABLE,
    (TargetKind.TABLE, "DELETE"): Operation.DELETE_TABLE,
    (TargetKind.ENTITIES, "GET"): Operation.QUERY_ENTITIES,
    (TargetKind.ENTITIES, "POST"): Operation.INSERT_ENTITY,
    (TargetKind.ENTITY, "GET"): Operation.QUERY_ENTITY,
    (TargetKind.ENTITY, "DELETE"): Operation.DELETE_ENTITY,
    (TargetKind.UNNAMED, "DELETE"): Operation.DELETE_ENTITY,
    (TargetKind.BATCH, "POST"): Operation.ENTITY_GROUP_TRANSACTION,
}
_WRITES: Final = {
    (True, True): Operation.UPDATE_ENTITY,
    (True, False): Operation.INSERT_OR_REPLACE_ENTITY,
    (False, True): Operation.MERGE_ENTITY,
    (False, False): Operation.INSERT_OR_MERGE_ENTITY,
}
_XML_OPERATIONS: Final = {
    (TargetKind.ENTITIES, "GET", "acl"): Operation.GET_TABLE_ACL,
    (TargetKind.ENTITIES, "PUT", "acl"): Operation.SET_TABLE_ACL,
    (TargetKind.SERVICE, "GET", "properties"): Operation.GET_SERVICE_PROPERTIES,
    (TargetKind.SERVICE, "PUT", "properties"): Operation.SET_SERVICE_PROPERTIES,
    (TargetKind.SERVICE, "GET", "stats"): Operation.GET_SERVICE_STATS,
}
