"""Causes of a refusal of a token or request, all of them, in the service's order."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final, NamedTuple

from storage.domain import sas
from storage.domain.access.addresses import is_within, read_client, read_range
from storage.domain.access.grants import (
    CHANGES,
    Grant,
    Operation,
    Permission,
    Resource,
    missing_permissions,
)
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import (
    AccountIsDisabled,
    AuthorizationFailure,
    InsufficientAccountPermissions,
    KeyBasedAuthenticationNotPermitted,
    StorageError,
)
from storage.domain.requests.options import read_options
from storage.domain.requests.routes import (
    Target,
    TargetKind,
    check_target,
    resolve_operation,
    resolve_target,
)
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import find_policy
from storage.domain.sas.terms import PERMISSION_LETTERS, RESOURCE_LETTERS
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.kinds import AccountKind
from storage.domain.values.ticks import to_second
from storage.inspector.facts import IncomingRequest, ManagedAccount
from storage.inspector.filters import inspect_filter
from storage.inspector.mistakes import Mistake
from storage.inspector.reports import Finding, finding

Token = TableSas | AccountSas
_IN_TABLES: Final = (TargetKind.ENTITIES, TargetKind.ENTITY, TargetKind.UNNAMED)


class Cause(NamedTuple):
    """Error of the service with the finding that explains it; either may be missing."""

    error: StorageError | None = None
    finding: Finding | None = None


def attempt(check: Callable[[], object]) -> Iterator[Cause]:
    """Yield the error that a check of the service raises."""
    try:
        check()
    except StorageError as error:
        yield Cause(error)


def first_error(causes: Iterable[Cause]) -> StorageError | None:
    """Return the first error, which is the service's response."""
    return next((cause.error for cause in causes if cause.error), None)


def findings_of(causes: Iterable[Cause]) -> list[Finding]:
    return list(dict.fromkeys(cause.finding for cause in causes if cause.finding))


def explain(*findings: Finding) -> Iterator[Cause]:
    return (Cause(None, it) for it in findings)


# the account


def of_keys(account: ManagedAccount) -> Iterator[Cause]:
    if not account.is_enabled:
        yield Cause(AccountIsDisabled(), finding(Mistake.ACCOUNT_DISABLED, account=account.name))
    if not account.accepts_keys:
        error = KeyBasedAuthenticationNotPermitted()
        yield Cause(error, finding(Mistake.KEYS_NOT_ACCEPTED, account=account.name))


def of_network(account: ManagedAccount, client: str) -> Iterator[Cause]:
    if account.networks and not is_within(client, account.networks):
        allowed = ", ".join(str(network) for network in account.networks)
        yield Cause(AuthorizationFailure(), finding(Mistake.NETWORK, address=client, allowed=allowed))


# the terms of a token


def of_policy(token: TableSas, account: ManagedAccount) -> Iterator[Cause]:
    """Yield the problems of a token's table or policy."""
    policies = account.policies.get(token.folded, {})
    policy = policies.get(token.identifier)
    if token.table and token.folded not in account.policies:
        yield from explain(missing_table(token.table, account.policies))
    elif token.identifier and policy is None:
        yield from explain(_missing_policy(token, list(policies)))
    elif token.identifier:
        for mistake, names in (
            (Mistake.POLICY_CONFLICT, [name for name, own, other in _terms(token, policy) if own and other]),
            (
                Mistake.POLICY_INCOMPLETE,
                [name for name, own, other in _terms(token, policy) if name != "st" and not (own or other)],
            ),
        ):
            if names:
                yield from explain(finding(mistake, names=", ".join(names), policy=token.identifier))


def missing_table(name: str, existing: Iterable[str]) -> Finding:
    """Return the finding of a table that does not exist, with the most similar of the existing names, if any."""
    names = {it.lower(): it for it in existing}
    similar = get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return finding(Mistake.TABLE_MISSING, table=name, **({"similar": names[similar[0]]} if similar else {}))


def _terms(token: TableSas, policy: AccessPolicy | None) -> Iterator[tuple[str, bool, bool]]:
    """Yield the terms set by the token and by its policy."""
    for name, attribute in (("st", "start"), ("se", "expiry"), ("sp", "permissions")):
        yield name, bool(getattr(token, attribute)), attribute in sas.fields_set_by(policy)


def _missing_policy(token: TableSas, identifiers: list[str]) -> Finding:
    similar = get_close_matches(token.identifier, identifiers, n=1, cutoff=0.6)
    if similar or len(identifiers) == 1:
        other = (similar or identifiers)[0]
        return finding(Mistake.POLICY_RENAMED, policy=token.identifier, similar=other, table=token.table)
    return finding(Mistake.POLICY_MISSING, policy=token.identifier, table=token.table)


def of_terms(token: Token, policy: AccessPolicy, scheme: str, client: str, now: float) -> Iterator[Cause]:
    start, expiry = sas.validity_period(
        AccessPolicy(token.start or policy.start, token.expiry or policy.expiry, None)
    )
    moment = int(now * TICKS_PER_SECOND)
    if expiry is not None and moment >= expiry:
        yield from explain(_expired(expiry, moment))
    if start is not None and moment < start:
        yield from explain(finding(Mistake.NOT_YET_VALID, moment=show(start), now=show(moment)))
    if token.protocol == "https" and scheme == "http":
        yield from explain(finding(Mistake.HTTPS_ONLY))
    bounds, address = read_range(token.address) if token.address else None, read_client(client)
    if bounds is not None and (address is None or not bounds.covers(address)):
        yield from explain(finding(Mistake.ADDRESS_OUTSIDE, allowed=token.address, address=client))
    if isinstance(token, AccountSas) and token.services and "t" not in token.services:
        yield from explain(finding(Mistake.NO_TABLE_SERVICE, services=token.services))


def _expired(expiry: int, moment: int) -> Finding:
    seconds = str((moment - expiry) // TICKS_PER_SECOND)
    return finding(Mistake.EXPIRED, moment=show(expiry), now=show(moment), seconds=seconds)


def show(ticks: int) -> str:
    moment = to_second(ticks)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""


def derive_grant(token: Token, account: ManagedAccount | None) -> Grant | None:
    """Return the grant of a token, ignoring time; None if its policy is unknown or its terms are invalid."""
    policy = find_policy(token, account.policies) if account else None
    if policy is None and isinstance(token, TableSas) and token.identifier:
        return None
    try:
        return sas.derive_grant(token, sas.combine_terms(token, policy))
    except StorageError:
        return None


# the operation


def of_operation(
    sent: IncomingRequest, grant: Grant, account: ManagedAccount | None, policy: str = ""
) -> Iterator[Cause]:
    """Yield the reasons why a grant does not permit a request; ``policy`` is the token's policy, if any."""
    kind = account.kind if account is not None else AccountKind.STORAGE
    is_write = sent.is_a_request and sent.method not in ("GET", "HEAD")
    # in Cosmos accounts both endpoints may be written to, and a batch may be a query
    is_batch = sent.address.rest.strip(b"/") == b"$batch"
    if is_write and not is_batch and sent.address.secondary and kind is AccountKind.STORAGE:
        yield Cause(InsufficientAccountPermissions(), finding(Mistake.SECONDARY_WRITE))
    try:
        resource, operation = _resolve(sent, kind)
    except StorageError as error:
        yield Cause(error)
        return
    operation = operation if sent.is_a_request else None
    try:
        check_target(grant, operation, resource)
        if resource.kind is TargetKind.ENTITY and operation is not None:
            grant.check_key(resource.key, reads=operation is Operation.QUERY_ENTITY)
    except StorageError as error:
        yield Cause(error, _insufficient(grant, operation, resource, policy))
    if operation in CHANGES and account is not None and account.is_read_only:
        yield Cause(InsufficientAccountPermissions(), finding(Mistake.READ_ONLY, account=account.name))
    if operation in (Operation.QUERY_ENTITIES, Operation.QUERY_TABLES):
        refused = inspect_filter(sent.query, kind)
        if refused is not None:
            yield Cause(refused.error, refused.finding)
    policies = account.policies if account is not None and sent.is_a_request else {}
    if policies and resource.kind in _IN_TABLES and resource.table.lower() not in policies:
        yield from explain(missing_table(resource.table, policies))


def _resolve(sent: IncomingRequest, kind: AccountKind) -> tuple[Target, Operation | None]:
    """Resolve a request to its target and operation; raises the service's error for an invalid path."""
    method = sent.effective_method
    resource = resolve_target(sent.address.rest, method, sent.address.account, kind)
    options = read_options(sent.query)
    return resource, resolve_operation(resource, method, options, conditional=b"if-match" in sent.headers)


def _insufficient(grant: Grant, operation: Operation | None, resource: Target, policy: str) -> Finding:
    has_table = resource.kind in _IN_TABLES
    table = resource.table.lower() if has_table else None
    if operation is None or (grant.table is not None and table not in (None, grant.table)):
        return finding(Mistake.OTHER_TABLE, table=resource.table, allowed=grant.table or "")
    if grant.allows(operation, table):
        partition_key, row_key = resource.key
        return finding(Mistake.OUTSIDE_RANGE, partition_key=partition_key, row_key=row_key)
    permitted = replace(grant, permissions=~Permission.NONE)
    if permitted.allows(operation, grant.table):
        details = {
            "operation": operation.value,
            "permissions": _letters(grant.permissions, PERMISSION_LETTERS),
            "needed": _letters(missing_permissions(operation, grant.permissions), PERMISSION_LETTERS),
        }
        return finding(Mistake.PERMISSION, **details, **({"policy": policy} if policy else {}))
    if replace(permitted, resources=~Resource.NONE).allows(operation, grant.table):
        types = _letters(grant.resources, RESOURCE_LETTERS)
        return finding(Mistake.RESOURCE_TYPE, operation=operation, types=types)
    return finding(Mistake.NOT_BY_TOKEN, operation=operation)


def _letters(flags: Permission | Resource, letters: Mapping[str, Permission] | Mapping[str, Resource]) -> str:
    return "".join(letter for letter, flag in letters.items() if flag in flags)
