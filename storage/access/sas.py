"""The registry of shared access signatures: issued and seen tokens, their labels, and which are blocked.

A signature is shown once when it is issued; only its fingerprint is stored.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from django.db import transaction
from django.db.models import Q, QuerySet

from storage.access import retired_keys
from storage.access.subject import AccessVerb
from storage.accounts import locking, quotas, sealed_keys
from storage.accounts.quotas import Allowance, QuotaReached
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.core.quotas import SAS
from storage.domain import sas
from storage.domain.access.actor import Actor
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import AuthenticationFailed, ResourceNotFound
from storage.domain.refusals import Reason
from storage.domain.requests.observed import Authentication
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import (
    SOON,
    KnownToken,
    Policies,
    TokenState,
    find_policy,
    is_orphaned,
    state_by_terms,
    token_state,
)
from storage.domain.sas.tokens import read_instant
from storage.domain.values.ticks import to_second
from storage.metrics import usage
from storage.metrics.usage import Usage
from storage.models import (
    Account,
    Activity,
    BlockedSas,
    RegisteredSas,
    SeenCredential,
    StoredAccessPolicy,
    Table,
)
from storage.tables import tables

Accounts: TypeAlias = Sequence[Account] | QuerySet[Account]

_SEEN: Final = 2000  # unregistered tokens per account, those used last; registered ones are unlimited
_LATEST: Final = 200  # unregistered tokens of several accounts


def known(account: Account, now: datetime) -> list[KnownToken]:
    """Return the registered tokens, newest first, then those only seen in requests, last used first."""
    issued = list(RegisteredSas.objects.filter(account=account).order_by("-created_at", "-pk"))
    seen = {use.name: use for use in usage.credentials(account.pk, now, Authentication.SAS, limit=_SEEN)}
    if len(seen) == _SEEN:
        # registered tokens that were used before those
        names = {record.fingerprint for record in issued} - seen.keys()
        earlier = usage.credentials(account.pk, now, Authentication.SAS, names=names, limit=len(names))
        seen |= {use.name: use for use in earlier}
    return _joined(account, issued, seen.values())


def find(account: Account, fingerprint: str, now: datetime) -> KnownToken | None:
    issued = list(RegisteredSas.objects.filter(account=account, fingerprint=fingerprint))
    use = usage.credential(account.pk, Authentication.SAS, fingerprint, now)
    return next(iter(_joined(account, issued, [] if use is None else [use])), None)


def labels(account: Account, fingerprints: Collection[str]) -> dict[str, str]:
    """Return the labels of registered tokens by fingerprint."""
    found = RegisteredSas.objects.filter(account=account, fingerprint__in=fingerprints).exclude(label="")
    return dict(found.values_list("fingerprint", "label"))


def newest_labels(account: Account, top: int) -> list[str]:
    """Return the labels of the tokens that were registered last."""
    found = RegisteredSas.objects.filter(account=account).exclude(label="").order_by("-pk")
    return list(found.values_list("label", flat=True)[:top])


def policies_of(account: Account) -> Policies:
    """Return the policies of an account by table and identifier; a policy without terms maps to an empty policy."""
    return _policies([account]).get(account.pk, {})


def _policies(of: Iterable[Account]) -> dict[int, dict[str, dict[str, AccessPolicy]]]:
    """Return policies by account, table and identifier."""
    by_account: dict[int, dict[str, dict[str, AccessPolicy]]] = {}
    stored = StoredAccessPolicy.objects.filter(table__account__in=of, table__deleted_at=None)
    for policy in stored.select_related("table"):
        tables_of = by_account.setdefault(policy.table.account_id, {})
        tables_of.setdefault(policy.table.folded_name, {})[policy.identifier] = policy.terms
    return by_account


def expiring(of: Accounts, now: datetime) -> list[tuple[Account, KnownToken, Policies]]:
    """Return valid tokens that expire soon: registered ones, and recently used others.

    Takes a few queries for all accounts, and verifies only the signatures of tokens that expire soon.
    """
    perhaps = _perhaps_expiring(of, now)
    accounts_of = Account.objects.in_bulk({pk for pk, _ in perhaps})
    policies, blocked = _policies(accounts_of.values()), _blocked(accounts_of.values())
    tokens: list[tuple[Account, KnownToken, Policies]] = []
    for (pk, _), token in perhaps.items():
        account, stored = accounts_of[pk], policies.get(pk, {})
        if state_by_terms(token.token, stored, now) is TokenState.EXPIRES_SOON:
            judged = _judged(token, account.name, _keys(account), blocked.get(pk, set()))
            if token_state(judged, stored, now) is TokenState.EXPIRES_SOON:
                tokens.append((account, judged, stored))
    return tokens


def _perhaps_expiring(of: Accounts, now: datetime) -> dict[tuple[int, str], KnownToken]:
    ids: Any = of.order_by().values("pk") if isinstance(of, QuerySet) else of
    seen = SeenCredential.objects.filter(
        account__in=ids, authentication=Authentication.SAS, last_used_at__gt=now - SOON
    )
    tokens: dict[tuple[int, str], KnownToken] = {}
    for name, pk, parameters, first in seen.order_by("-last_used_at").values_list(
        "name", "account_id", "parameters", "first_used_at"
    )[:_LATEST]:
        token = sas.from_parameters(parameters)
        if token is not None:
            tokens[pk, name] = KnownToken(name, token, first_used=first)
    is_near = Q(expires_at=None) | Q(expires_at__gt=now, expires_at__lte=now + SOON)
    for record in RegisteredSas.objects.filter(is_near, account__in=ids):
        registered = _registered(record, None)
        if registered is not None:
            tokens[record.account_id, record.fingerprint] = registered
    return tokens


def _joined(account: Account, issued: Sequence[RegisteredSas], uses: Iterable[Usage]) -> list[KnownToken]:
    seen = {use.name: use for use in uses}
    blocked = _blocked([account]).get(account.pk, set())
    keys = _keys(account)
    tokens = [_registered(record, seen.pop(record.fingerprint, None)) for record in issued]
    for use in seen.values():
        token = sas.from_parameters(use.parameters)
        tokens.append(None if token is None else _used(KnownToken(use.name, token), use))
    return [_judged(token, account.name, keys, blocked) for token in tokens if token is not None]


def _blocked(of: Iterable[Account]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for pk, fingerprint in BlockedSas.objects.filter(account__in=of).values_list("account_id", "fingerprint"):
        found.setdefault(pk, set()).add(fingerprint)
    return found


def _registered(record: RegisteredSas, use: Usage | None) -> KnownToken | None:
    token = sas.from_parameters(record.parameters)
    if token is None:
        return None
    described = KnownToken(
        record.fingerprint,
        token,
        record.label,
        is_registered=True,
        created=record.created_at if record.author else None,
        purpose=record.purpose,
        owner=record.owner,
        author=record.author,
    )
    return described if use is None else _used(described, use)


def _used(token: KnownToken, use: Usage) -> KnownToken:
    return replace(
        token, first_used=use.first, last_used=use.last, uses=use.uses, address=use.address, agent=use.agent
    )


class _Key(NamedTuple):
    """A key of an account, or a replaced one in its grace period."""

    number: int
    secret: bytes
    ends: datetime | None = None  # the end of the grace period of a replaced key


def _keys(account: Account) -> list[_Key]:
    old = retired_keys.opened_of(account, retired_keys.still_accepted(account, datetime.now(UTC)))
    return [
        *(_Key(number, secret) for number, secret in enumerate(sealed_keys.keys_of(account), 1)),
        *(_Key(retired.number, secret, retired.accepted_until) for retired, secret in old),
    ]


def _judged(token: KnownToken, account: str, keys: Sequence[_Key], blocked: set[str]) -> KnownToken:
    is_blocked = token.fingerprint in blocked
    position = sas.find_key_by_fingerprint(
        token.token, token.fingerprint, account, [key.secret for key in keys]
    )
    if position is None:
        return replace(token, key=None, is_blocked=is_blocked)
    return replace(token, key=keys[position].number, key_ends=keys[position].ends, is_blocked=is_blocked)


# issuing


class Refusal(StrEnum):
    """Reason why a token is not issued, as the service would refuse it."""

    MALFORMED = "malformed"
    NO_TABLE = "no table"
    NO_POLICY = "no policy"
    CONFLICTING = "conflicting"  # a field is set in both token and policy, or a required one in neither


class SasRefused(Exception):
    """A SAS token is refused; ``detail`` is the service's own message."""

    def __init__(self, reason: Refusal, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class SasDescription:
    """A user's notes about a token; the label is its name in lists."""

    label: str
    purpose: str = ""
    owner: str = ""


_DESCRIPTION: Final = tuple(field.name for field in fields(SasDescription))


@dataclass(frozen=True, slots=True)
class IssuedSas:
    """A new ``token`` with its signature, which cannot be shown again."""

    token: TableSas | AccountSas
    fingerprint: str
    activity: Activity


@transaction.atomic
def issue(
    account: Account, token: TableSas | AccountSas, key: int, description: SasDescription, *, by: Actor
) -> IssuedSas:
    """Sign a SAS token with key 1 or 2 and register it; raises SasRefused, and QuotaReached beyond the SAS quota."""
    locked = locking.lock(account)
    table = check(account, token)
    signed = _signed(account, token, key)
    fingerprint = sas.fingerprint(signed)
    left = allowance(locked)
    if (
        left.is_used_up
        and not RegisteredSas.objects.filter(account=account, fingerprint=fingerprint).exists()
    ):
        raise QuotaReached(Reason.TOO_MANY_SAS, account=account.name, most=left.most)
    RegisteredSas.objects.update_or_create(
        account=account,
        fingerprint=fingerprint,
        defaults={
            "kind": kind_of(token),
            "table_name": "" if table is None else table.name,
            "parameters": sas.to_parameters(signed),
            "author": by.name,
            "expires_at": _moment(token.expiry),
            **asdict(description),
        },
    )
    detail = {
        "fingerprint": fingerprint,
        "label": description.label,
        "kind": kind_of(token),
        "key": f"key{key}",
    }
    done = activity.record(AccessVerb.SAS_ISSUE, by, account=account, table=table, detail=detail)
    return IssuedSas(signed, fingerprint, done)


def allowance(account: Account) -> Allowance:
    """Return the number of unexpired registered tokens of an account and its quota."""
    is_unexpired = Q(expires_at=None) | Q(expires_at__gt=datetime.now(UTC))
    registered = RegisteredSas.objects.filter(is_unexpired, account=account)
    return Allowance(registered.count(), quotas.limit(SAS, account))


def sign_again(account: Account, fingerprint: str) -> TableSas | AccountSas | None:
    """Recompute the signature of an issued token; None if its key was replaced."""
    record = RegisteredSas.objects.filter(account=account, fingerprint=fingerprint).first()
    token = None if record is None else sas.from_parameters(record.parameters)
    if token is None:
        return None
    signed = (_signed(account, token, key) for key in (1, 2))
    return next((one for one in signed if sas.fingerprint(one) == fingerprint), None)


def check(account: Account, token: TableSas | AccountSas) -> Table | None:
    """Validate a token and return its table; raises SasRefused if it can never be valid."""
    try:
        sas.check(token)
    except AuthenticationFailed as error:
        raise SasRefused(Refusal.MALFORMED, _detail(error)) from None
    table = tables.find(account, token.folded) if isinstance(token, TableSas) else None
    if isinstance(token, TableSas) and table is None:
        raise SasRefused(Refusal.NO_TABLE)
    policies = policies_of(account)
    if is_orphaned(token, policies):
        raise SasRefused(Refusal.NO_POLICY)
    try:
        sas.combine_terms(token, find_policy(token, policies))
    except AuthenticationFailed as error:
        raise SasRefused(Refusal.CONFLICTING, _detail(error)) from None
    return table


def kind_of(token: TableSas | AccountSas) -> str:
    return "table" if isinstance(token, TableSas) else "account"


def _signed(account: Account, token: TableSas | AccountSas, key: int) -> TableSas | AccountSas:
    secret = sealed_keys.keys_of(account)[key - 1]
    # the two calls differ in the type of their result
    if isinstance(token, TableSas):
        return sas.sign(token, account.name, secret)
    return sas.sign(token, account.name, secret)


def _detail(error: AuthenticationFailed) -> str:
    return str(error.details.get("AuthenticationErrorDetail", ""))


def _moment(text: str) -> datetime | None:
    ticks = read_instant(text) if text else None
    return None if ticks is None else to_second(ticks)


# labels


def describe(
    account: Account,
    fingerprint: str,
    description: SasDescription | None,
    *,
    by: Actor,
    undoes: Activity | None = None,
) -> Activity | None:
    """Set or remove the description of a known token; return None if nothing changed.

    Raises ResourceNotFound for an unknown token, ChangedSince if ``undoes`` is not the last change.
    """
    with transaction.atomic():
        # if two users label a token at once, the second waits
        locking.lock(account)
        record = RegisteredSas.objects.filter(account=account, fingerprint=fingerprint).first()
        before = None if record is None else {field: getattr(record, field) for field in _DESCRIPTION}
        after = None if description is None else asdict(description)
        if undoes is not None and before != undoes.after:
            raise activity.ChangedSince
        if before == after:
            return None
        _describe(account, fingerprint, record, description)
        named = after or before or {}
        detail = {"fingerprint": fingerprint, "label": named.get("label", "")}
        return activity.record(
            AccessVerb.SAS_CHANGE,
            by,
            account=account,
            detail=detail,
            before=before,
            after=after,
            undoes=undoes,
        )


def _describe(
    account: Account, fingerprint: str, record: RegisteredSas | None, description: SasDescription | None
) -> None:
    if record is None:
        record = _adopted(account, fingerprint)
    if description is None:
        record.delete()
        return
    for name, value in asdict(description).items():
        setattr(record, name, value)
    record.save()


def _adopted(account: Account, fingerprint: str) -> RegisteredSas:
    """Create an unsaved record for a token that was seen in requests but not issued here."""
    seen = usage.parameters(account.pk, fingerprint)
    token = None if seen is None else sas.from_parameters(seen)
    if token is None:
        raise ResourceNotFound
    return RegisteredSas(
        account=account,
        fingerprint=fingerprint,
        kind=kind_of(token),
        table_name=token.table if isinstance(token, TableSas) else "",
        parameters=sas.to_parameters(token),
        expires_at=_moment(token.expiry),
    )


# blocking


def set_blocked(
    account: Account, fingerprint: str, *, blocked: bool, by: Actor, undoes: Activity | None = None
) -> Activity | None:
    """Block or unblock a token, effective from the next request on; return None if nothing changed."""
    with invalidating_catalogs():
        locking.lock(account)
        record = RegisteredSas.objects.filter(account=account, fingerprint=fingerprint).first()
        if record is None and usage.parameters(account.pk, fingerprint) is None:
            raise ResourceNotFound
        barred = BlockedSas.objects.select_for_update().filter(account=account, fingerprint=fingerprint)
        before = barred.exists()
        if undoes is not None and {"blocked": before} != undoes.after:
            raise activity.ChangedSince
        if before == blocked:
            return None
        if blocked:
            BlockedSas.objects.create(account=account, fingerprint=fingerprint, author=by.name)
        else:
            barred.delete()
        return activity.record(
            AccessVerb.SAS_BLOCK if blocked else AccessVerb.SAS_UNBLOCK,
            by,
            account=account,
            detail={"fingerprint": fingerprint, "label": "" if record is None else record.label},
            before={"blocked": before},
            after={"blocked": blocked},
            undoes=undoes,
        )
