"""Storage accounts: created, found and locked, and their keys rotated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Self

from django.conf import settings
from django.db import IntegrityError
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from storage.accounts import account_settings, key_dates
from storage.accounts.locking import lock_by_name
from storage.accounts.refusals import AccountError, AccountExists
from storage.accounts.sealed_keys import (
    DEVELOPMENT_KEY,
    generate_key,
    is_public,
    seal,
)
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.actor import SERVER, Actor
from storage.domain.errors import InsufficientAccountPermissions, MethodNotAllowed, ServerBusy
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import DEVELOPMENT_ACCOUNT, is_account_name
from storage.models import Account, RetiredKey
from storage.relations import history

NO_GRACE: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class NewAccount:
    """Values of an account to create; missing keys are generated. It is frozen at ``expires_at`` and deleted later."""

    primary: bytes | None = None
    secondary: bytes | None = None
    kind: AccountKind = AccountKind.STORAGE
    label: str = ""
    description: str = ""
    colour: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    expires_at: datetime | None = None
    request_digest: str = ""
    enabled: bool = True

    @classmethod
    def like(cls, source: Account) -> Self:
        """Return the values for a new account like another, without its lifetime."""
        return cls(
            kind=AccountKind(source.kind),
            label=source.label,
            description=source.description,
            colour=source.colour,
            labels=source.labels,
        )

    @property
    def settings(self) -> dict[str, object]:
        names = ("label", "description", "colour", "labels", "expires_at")
        return {name: getattr(self, name) for name in names}


_PLAIN: Final = NewAccount()


def add(name: str, new: NewAccount = _PLAIN, *, by: Actor = SERVER) -> Account:
    """Create an account; raises AccountExists if its name is taken."""
    check_name(name)
    check_keys(name, new.primary, new.secondary)
    account_settings.check(new.settings)
    account = unsaved(name, new.kind, request_digest=new.request_digest, enabled=new.enabled, **new.settings)
    try:
        with invalidating_catalogs():
            store(account, new.primary or generate_key(), new.secondary)
            after = {"kind": new.kind.value, **account_settings.to_json(new.settings)}
            activity.record(AccountVerb.CREATE, by, account=account, after=after)
    except IntegrityError:
        raise AccountExists(Reason.ACCOUNT_EXISTS, account=name) from None
    return account


def unsaved(name: str, kind: AccountKind, **fields: Any) -> Account:
    return Account(name=name, kind=kind.value, **fields)


def store(account: Account, primary: bytes, secondary: bytes | None) -> None:
    """Save an account with its keys; a missing secondary key is kept, or generated."""
    account.primary_key_sealed = seal(account.name, primary)
    if secondary or not account.secondary_key_sealed:
        account.secondary_key_sealed = seal(account.name, secondary or generate_key())
    is_new = account.pk is None
    account.save()
    if is_new and account.history_days:
        history.start(account, is_new=True)


def rotate(name: str, which: int, *, by: Actor = SERVER, grace: timedelta = NO_GRACE) -> Account:
    """Regenerate key 1 or 2; tokens signed by the old key are accepted until the grace period ends."""
    now = timezone.now()
    with invalidating_catalogs():
        account = lock_by_name(name)
        if not grace:
            older = RetiredKey.objects.filter(account=account, number=which, accepted_until__gt=now)
            older.update(accepted_until=now)
        field = "primary_key_sealed" if which == 1 else "secondary_key_sealed"
        RetiredKey.objects.create(
            account=account,
            number=which,
            sealed=getattr(account, field),
            retired_at=now,
            accepted_until=now + grace,
        )
        setattr(account, field, seal(name, generate_key()))
        account.save(update_fields=(field,))
        detail = {"key": f"key{which}"}
        if grace:
            detail["accepted_until"] = (now + grace).isoformat()
        activity.record(AccountVerb.KEY_ROTATE, by, account=account, detail=detail)
        key_dates.note_rotation(account, [which])
    return account


def check_writable(account: Account) -> None:
    """Raise InsufficientAccountPermissions for a read-only account.

    The service has no read-only accounts; this is its documented 403 code for accounts that refuse writes [inferred].
    """
    if account.read_only:
        raise InsufficientAccountPermissions


def writable(account: Account) -> Account:
    """Reload an account and check that it is writable; long-running work calls this before each transaction.

    Raises InsufficientAccountPermissions if the account is read-only, and ServerBusy if it was deleted.
    """
    stored = Account.objects.filter(pk=account.pk).first()
    if stored is None:
        raise ServerBusy  # it may be created again
    check_writable(stored)
    return stored


def require_storage(account: Account) -> None:
    """Raise MethodNotAllowed for a Cosmos account, which has no policies and service properties."""
    if account.kind == AccountKind.COSMOS:
        raise MethodNotAllowed


def usable() -> QuerySet[Account]:
    """Select the accounts that this server can serve, disabled ones included; kinds of newer versions are left out."""
    found = Account.objects.filter(kind__in=AccountKind)
    return found if settings.DEVELOPMENT_ACCOUNT_ALLOWED else found.exclude(pk__in=_public_accounts.find())


class _PublicAccounts:
    """Cached identifiers of accounts with the public development key, so that keys are decrypted only once.

    A server that refuses such accounts gets no new ones.
    """

    def __init__(self) -> None:
        self._newest = 0
        self._found: frozenset[int] = frozenset()

    def find(self) -> frozenset[int]:
        looked_at = list(Account.objects.filter(Q(pk__gt=self._newest) | Q(pk__in=self._found)))
        self._found = frozenset(account.pk for account in looked_at if is_public(account))
        self._newest = max([self._newest, *(account.pk for account in looked_at)])
        return self._found


_public_accounts: Final = _PublicAccounts()


def find(name: str) -> Account | None:
    """Return an account that this server may serve; None also for an invalid name."""
    if not is_account_name(name):
        return None
    account = Account.objects.filter(name=name).first()
    return None if account is None or _is_refused(account) else account


def listed() -> QuerySet[Account]:
    """Select all accounts by name, including those that this server may not serve."""
    return Account.objects.order_by("name")


def by_name(name: str) -> Account | None:
    """Return an account, even if this server may not serve it."""
    return Account.objects.filter(name=name).first()


def read_only() -> set[int]:
    """Return the primary keys (ids) of read-only accounts."""
    return set(Account.objects.filter(read_only=True).values_list("pk", flat=True))


def count_by_consistency() -> dict[str, int]:
    """Count accounts by consistency level."""
    return dict(Account.objects.values_list("consistency").annotate(Count("pk")))


def names() -> set[str]:
    """Return the names of all accounts, including those that this server may not serve."""
    return set(Account.objects.values_list("name", flat=True))


def exists(name: str) -> bool:
    """Return whether an account of this name exists, even if this server may not serve it."""
    return Account.objects.filter(name=name).exists()


def check_name(name: str) -> None:
    if not is_account_name(name):
        raise AccountError(Reason.ACCOUNT_NAME, account=name)


def check_keys(name: str, *keys: bytes | None) -> None:
    """Raise AccountError for the public development key if this server does not allow it."""
    if DEVELOPMENT_KEY in keys and not settings.DEVELOPMENT_ACCOUNT_ALLOWED:
        raise AccountError(Reason.PUBLIC_KEY, account=name, development=DEVELOPMENT_ACCOUNT)


def _is_refused(account: Account) -> bool:
    if account.kind not in set(AccountKind):
        return True  # a kind of a newer version
    return not settings.DEVELOPMENT_ACCOUNT_ALLOWED and is_public(account)
