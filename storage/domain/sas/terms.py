"""Terms of a SAS token: its validity period, protocol, address range and grant."""

from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache, reduce
from operator import or_
from typing import Final

from storage.domain.access.addresses import read_client, read_range
from storage.domain.access.grants import ALL_ENTITIES, Grant, GrantKind, KeyRange, Permission, Resource
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import (
    AuthenticationFailed,
    AuthorizationProtocolMismatch,
    AuthorizationServiceMismatch,
    AuthorizationSourceIPMismatch,
    MethodNotAllowed,
)
from storage.domain.filters.query import Position
from storage.domain.sas.tokens import MISSING_PARAMETERS, RESTRICTED, AccountSas, TableSas, read_instant
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.kinds import AccountKind


def authorize(
    token: TableSas | AccountSas, policy: AccessPolicy | None, *, now: float, scheme: str, address: str
) -> Grant:
    """Return the grant of a token; raises the service's error for an invalid time, protocol or address.

    ``policy`` is the policy that the token references; ``now`` is in seconds since 1970; ``scheme`` and
    ``address`` are those of the request.
    """
    terms = combine_terms(token, policy)
    _check_time(terms, int(now * TICKS_PER_SECOND))
    if token.protocol == "https" and scheme != "https":
        raise AuthorizationProtocolMismatch
    if token.address:
        _check_address(token.address, address)
    return derive_grant(token, terms)


def check_kind(token: TableSas | AccountSas, kind: AccountKind) -> None:
    """Raise MethodNotAllowed for a range of keys in a Cosmos account."""
    if kind is AccountKind.COSMOS and isinstance(token, TableSas) and token.has_range:
        raise MethodNotAllowed("Shared access signature with PartitionKey or RowKey are not supported")


def derive_grant(token: TableSas | AccountSas, terms: AccessPolicy) -> Grant:
    """Return the grant of a token, regardless of time and address."""
    if isinstance(token, TableSas):
        return Grant(
            GrantKind.TABLE_SAS,
            _permissions(terms.permission or ""),
            Resource.OBJECT,
            table=token.folded,
            keys=key_range(token),
            legacy=token.version < RESTRICTED,
        )
    if "t" not in token.services:
        raise AuthorizationServiceMismatch
    return Grant(GrantKind.ACCOUNT_SAS, _permissions(token.permissions), _resources(token.resource_types))


def combine_terms(token: TableSas | AccountSas, policy: AccessPolicy | None) -> AccessPolicy:
    """Combine token and policy: each term may be set by only one of them, and only the start may be missing."""
    stored = policy or AccessPolicy()
    terms = (
        (token.start, stored.start),
        (token.expiry, stored.expiry),
        (token.permissions, stored.permission),
    )
    if any(own and other for own, other in terms):
        raise AuthenticationFailed(
            AuthenticationErrorDetail="Access policy fields can be associated with signature "
            "or SAS identifier but not both."
        )
    start, expiry, permission = (own or other for own, other in terms)
    if not expiry or not permission:
        raise AuthenticationFailed(AuthenticationErrorDetail=MISSING_PARAMETERS)
    return AccessPolicy(start or None, expiry, permission)


def validity_period(terms: AccessPolicy) -> tuple[int | None, int | None]:
    """Return start and expiry in ticks since 1970."""
    start = read_instant(terms.start) if terms.start else None
    return start, read_instant(terms.expiry) if terms.expiry else None


def fields_set_by(policy: AccessPolicy | None) -> frozenset[str]:
    """Return the token attributes that a policy sets, so that tokens must omit them."""
    stored = policy or AccessPolicy()
    named = (("start", stored.start), ("expiry", stored.expiry), ("permissions", stored.permission))
    return frozenset(name for name, value in named if value)


def _check_time(terms: AccessPolicy, now: int) -> None:
    start, expiry = validity_period(terms)
    if expiry is None or now >= expiry or (start is not None and now < start):
        raise AuthenticationFailed(
            AuthenticationErrorDetail="Signature not valid in the specified time frame: "
            f"Start [{_moment(start)}] - Expiry [{_moment(expiry)}] - Current [{_moment(now)}]"
        )


def _moment(ticks: int | None) -> str:
    if ticks is None:
        return ""
    return format_datetime(datetime.fromtimestamp(ticks // TICKS_PER_SECOND, UTC), usegmt=True)


def _check_address(allowed: str, address: str) -> None:
    bounds, client = read_range(allowed), read_client(address)
    if bounds is None or client is None or not bounds.covers(client):
        # a proxy may pass on something that is not an address; it is not echoed
        message = AuthorizationSourceIPMismatch.message.format(client or "unknown")
        raise AuthorizationSourceIPMismatch(message)


def key_range(token: TableSas) -> KeyRange:
    if not token.start_partition and not token.end_partition:
        return ALL_ENTITIES
    start = Position(token.start_partition, token.start_row) if token.start_partition else None
    # the first position past the range: U+0001 sorts before every character of a key
    end = None
    if token.end_row:
        end = Position(token.end_partition, token.end_row + "\x01")
    elif token.end_partition:
        end = Position(token.end_partition + "\x01", "")
    return KeyRange(start, end)


PERMISSION_LETTERS: Final = {
    "r": Permission.READ,
    "a": Permission.ADD,
    "u": Permission.UPDATE,
    "d": Permission.DELETE,
    "w": Permission.WRITE,
    "c": Permission.CREATE,
    "l": Permission.LIST,
}
RESOURCE_LETTERS: Final = {"s": Resource.SERVICE, "c": Resource.CONTAINER, "o": Resource.OBJECT}


@lru_cache(maxsize=256)
def _permissions(letters: str) -> Permission:
    return reduce(
        or_, (PERMISSION_LETTERS.get(letter, Permission.NONE) for letter in letters), Permission.NONE
    )


@lru_cache(maxsize=64)
def _resources(letters: str) -> Resource:
    return reduce(or_, (RESOURCE_LETTERS.get(letter, Resource.NONE) for letter in letters), Resource.NONE)
