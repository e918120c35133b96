"""All reasons to refuse a request or token apart from its signature, not only the first."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from storage.domain import sas
from storage.domain.access.addresses import is_within, read_client, read_range
from storage.domain.access.grants import DELETES, WRITES, Grant, Operation, Permission, Resource
from storage.domain.access.policies import AccessPolicy
from storage.domain.access.signature import CLOCK_SKEW, read_authorization, read_date
from storage.domain.errors import InvalidAuthenticationInfo, StorageError
from storage.domain.requests.routes import TargetKind
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import find_policy
from storage.domain.sas.terms import PERMISSION_LETTERS, RESOURCE_LETTERS
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.kinds import AccountKind
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.judging import IncomingRequest, is_secondary_write, resolve_request
from storage.inspector.reports import Finding, Mistake, finding

Token = TableSas | AccountSas


def find_account_causes(account: ManagedAccount, client: str) -> Iterator[Finding]:
    if not account.is_enabled:
        yield finding(Mistake.ACCOUNT_DISABLED, account=account.name)
    if not account.accepts_keys:
        yield finding(Mistake.KEYS_NOT_ACCEPTED, account=account.name)
    if account.networks and not is_within(client, account.networks):
        allowed = ", ".join(str(network) for network in account.networks)
        yield finding(Mistake.NETWORK, address=client, allowed=allowed)


def find_authorization_causes(sent: IncomingRequest, now: float) -> Iterator[Finding]:
    """Find what is wrong with the Authorization header or the date of a request."""
    header = sent.headers.get(b"authorization", b"")
    if header[:7].lower() == b"bearer ":
        yield finding(Mistake.BEARER)
        return
    try:
        authorization = read_authorization(header)
    except InvalidAuthenticationInfo:
        yield finding(Mistake.MALFORMED_AUTHORIZATION)
        return
    if authorization.account != sent.address.account:
        yield finding(Mistake.ACCOUNT_DIFFERS, signed=authorization.account, addressed=sent.address.account)
    yield from _of_date(sent, now)


def _of_date(sent: IncomingRequest, now: float) -> Iterator[Finding]:
    instant = read_request_date(sent)
    if instant is None:
        yield finding(Mistake.NO_DATE, date=_date(sent).decode("latin-1"))
    elif abs(now - instant) > CLOCK_SKEW:
        seconds = int(now - instant)
        direction = "old" if seconds > 0 else "early"
        yield finding(Mistake.CLOCK_SKEW, seconds=str(abs(seconds)), direction=direction, now=_text(now))


def read_request_date(sent: IncomingRequest) -> int | None:
    """Read the date of a request in seconds since 1970."""
    return read_date(_date(sent))


def _date(sent: IncomingRequest) -> bytes:
    return sent.headers.get(b"x-ms-date", sent.headers.get(b"date", b""))


def find_token_causes(
    token: Token, account: ManagedAccount | None, scheme: str, client: str, facts: Facts
) -> Iterator[Finding]:
    """Find why a token is refused; without the account, judge the token alone."""
    policy = AccessPolicy()
    if isinstance(token, TableSas) and account is not None:
        yield from _of_policy(token, account)
        policy = find_policy(token, account.policies) or policy
    yield from _of_time(token, policy, facts.now)
    if token.protocol == "https" and scheme == "http":
        yield finding(Mistake.HTTPS_ONLY)
    bounds, address = read_range(token.address) if token.address else None, read_client(client)
    if bounds is not None and (address is None or not bounds.covers(address)):
        yield finding(Mistake.ADDRESS_OUTSIDE, allowed=token.address, address=client)
    if isinstance(token, AccountSas) and token.services and "t" not in token.services:
        yield finding(Mistake.NO_TABLE_SERVICE, services=token.services)


def _of_policy(token: TableSas, account: ManagedAccount) -> Iterator[Finding]:
    if account.kind is AccountKind.COSMOS and token.has_range:
        yield finding(Mistake.RANGE_IN_COSMOS, account=account.name)
    if token.table and token.folded not in account.policies:
        yield finding(Mistake.TABLE_MISSING, table=token.table)
        return
    if not token.identifier:
        return
    policies = account.policies.get(token.folded, {})
    policy = policies.get(token.identifier)
    if policy is None:
        yield _missing_policy(token, list(policies))
        return
    both = [
        name
        for name, attribute in _TERMS.items()
        if attribute in sas.fields_set_by(policy) and getattr(token, attribute)
    ]
    if both:
        yield finding(Mistake.POLICY_CONFLICT, names=", ".join(both), policy=token.identifier)
    neither = [
        name
        for name, attribute in _TERMS.items()
        if name != "st" and attribute not in sas.fields_set_by(policy) and not getattr(token, attribute)
    ]
    if neither:
        yield finding(Mistake.POLICY_INCOMPLETE, names=", ".join(neither), policy=token.identifier)


_TERMS: Final = {"st": "start", "se": "expiry", "sp": "permissions"}


def _missing_policy(token: TableSas, identifiers: list[str]) -> Finding:
    similar = get_close_matches(token.identifier, identifiers, n=1, cutoff=0.6)
    if similar or len(identifiers) == 1:
        other = (similar or identifiers)[0]
        return finding(Mistake.POLICY_RENAMED, policy=token.identifier, similar=other, table=token.table)
    return finding(Mistake.POLICY_MISSING, policy=token.identifier, table=token.table)


def _of_time(token: Token, policy: AccessPolicy, now: float) -> Iterator[Finding]:
    start, expiry = sas.validity_period(
        AccessPolicy(token.start or policy.start, token.expiry or policy.expiry, None)
    )
    moment = int(now * TICKS_PER_SECOND)
    if expiry is not None and moment >= expiry:
        yield finding(Mistake.EXPIRED, moment=_text(expiry / TICKS_PER_SECOND), now=_text(now))
    if start is not None and moment < start:
        yield finding(Mistake.NOT_YET_VALID, moment=_text(start / TICKS_PER_SECOND), now=_text(now))


def find_operation_causes(
    sent: IncomingRequest, grant: Grant, account: ManagedAccount | None, name: str
) -> Iterator[Finding]:
    """Find why a grant is not sufficient for a request."""
    kind = account.kind if account is not None else AccountKind.STORAGE
    try:
        resource, operation = resolve_request(sent, name, kind)
    except StorageError:
        return
    if sent.is_a_request and is_secondary_write(sent, kind):
        yield finding(Mistake.SECONDARY_WRITE)
    table = resource.table.lower() if resource.kind in _OF_A_TABLE else None
    if grant.table is not None and table not in (None, grant.table):
        yield finding(Mistake.OTHER_TABLE, table=resource.table, allowed=grant.table)
    elif sent.is_a_request and operation is not None:
        if not grant.allows(operation, table):
            yield _not_allowed(grant, operation)
        elif resource.kind is TargetKind.ENTITY and not grant.keys.covers(resource.key):
            partition_key, row_key = resource.key
            yield finding(Mistake.OUTSIDE_RANGE, partition_key=partition_key, row_key=row_key)
    is_write = sent.is_a_request and operation in WRITES | DELETES
    if is_write and account is not None and account.is_read_only:
        yield finding(Mistake.READ_ONLY, account=account.name)


_OF_A_TABLE: Final = (TargetKind.ENTITIES, TargetKind.ENTITY, TargetKind.UNNAMED)


def _not_allowed(grant: Grant, operation: Operation) -> Finding:
    permitted = replace(grant, permissions=~Permission.NONE)
    if permitted.allows(operation, grant.table):
        return finding(
            Mistake.PERMISSION,
            operation=operation,
            permissions=_letters(grant.permissions, PERMISSION_LETTERS),
        )
    if replace(permitted, resources=~Resource.NONE).allows(operation, grant.table):
        return finding(
            Mistake.RESOURCE_TYPE, operation=operation, types=_letters(grant.resources, RESOURCE_LETTERS)
        )
    return finding(Mistake.NOT_BY_TOKEN, operation=operation)


def _letters(flags: Permission | Resource, letters: Mapping[str, Permission] | Mapping[str, Resource]) -> str:
    return "".join(letter for letter, flag in letters.items() if flag in flags)


def derive_grant(token: Token, account: ManagedAccount | None) -> Grant | None:
    """Return what a token grants, regardless of time; None if its terms are not known or not valid."""
    policy = AccessPolicy()
    if isinstance(token, TableSas) and token.identifier:
        found = find_policy(token, account.policies) if account else None
        if found is None:
            return None
        policy = found
    try:
        return sas.derive_grant(token, sas.combine_terms(token, policy))
    except StorageError:
        return None


def _text(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return ""
