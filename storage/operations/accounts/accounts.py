"""Storage accounts and their keys, which are stored sealed with the server's secret."""

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypedDict, Unpack

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from storage.domain.access.actor import SERVER, Actor
from storage.domain.access.addresses import Network, read_network
from storage.domain.errors import InsufficientAccountPermissions, MethodNotAllowed, ServerBusy
from storage.domain.refusals import Reason, Refused
from storage.domain.service import connections, lifetimes
from storage.domain.service.activity import Verb
from storage.domain.service.consistency import STALENESS_LIMIT, Consistency
from storage.domain.service.indexes import is_adaptive_by_default
from storage.domain.service.labels import LabelError
from storage.domain.service.labels import check_labels as check_labels
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import DEVELOPMENT_ACCOUNT as DEVELOPMENT_ACCOUNT
from storage.domain.values.names import is_account_name
from storage.models import Account, Activity, RetiredKey, Snapshot, Table
from storage.operations.activity import activity, long_operations
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.relations import history, snapshot_copies, table_relations

# published by Microsoft for the emulator: no secret
DEVELOPMENT_KEY = base64.b64decode(
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
KEY_LENGTH = 64
NO_GRACE: Final = timedelta(0)
NONCE_LENGTH = 12


class AccountError(Refused):
    """An operation on an account is refused."""


class AccountExists(AccountError):
    """The name is taken."""


class AccountIsBusy(AccountError):
    """Another request makes or deletes an account of this name."""


class AccountIsProtected(AccountError):
    """A protected account cannot be removed."""


class AccountHasTables(AccountError):
    """An account with tables is only removed when the caller asks to remove them too."""


class AccountKindIsFixed(AccountError):
    """An account never changes its kind."""


class SealedOtherwise(AccountError):
    """A key was sealed with another secret than the one of this server."""


class AccountExpired(AccountError):
    """An account whose lifetime is over cannot be enabled."""


@dataclass(frozen=True, slots=True)
class AccountKeys:
    """A declared account; a secondary key that is not given stays as it is, or is generated."""

    name: str
    primary: bytes
    secondary: bytes | None = None
    kind: AccountKind = AccountKind.STORAGE


def read_declaration(text: str) -> list[AccountKeys]:
    """Read `name:key1[:key2];name2@cosmos:…`: the format of AZURITE_ACCOUNTS, and a kind after the name."""
    return [_read_account(part.strip()) for part in text.split(";") if part.strip()]


def add(
    name: str,
    primary: bytes | None = None,
    secondary: bytes | None = None,
    *,
    kind: AccountKind = AccountKind.STORAGE,
    by: Actor = SERVER,
    label: str = "",
    description: str = "",
    colour: str = "",
    labels: Mapping[str, str] | None = None,
    lifetime: timedelta | None = None,
    expires_at: datetime | None = None,
    request_digest: str = "",
    enabled: bool = True,
) -> Account:
    """Create an account. With a ``lifetime`` or ``expires_at``, it is frozen at that time and deleted later."""
    _check_name(name)
    keys = AccountKeys(name, primary or generate_key(), secondary)
    _check_keys(keys)
    described = {"label": label, "description": description, "colour": colour, "labels": dict(labels or {})}
    _check_settings(described)
    end = timezone.now() + lifetime if lifetime is not None else expires_at
    new = _new(name, kind, expires_at=end, request_digest=request_digest, enabled=enabled, **described)
    try:
        with invalidating_catalogs():
            account = _store(new, keys)
            after = {**described, "kind": kind.value, "expires_at": _written(end)}
            activity.record(Verb.ACCOUNT_CREATE, by, account=account, after=after)
    except IntegrityError:
        raise AccountExists(Reason.ACCOUNT_EXISTS, account=name) from None
    return account


def _new(name: str, kind: AccountKind, **fields: Any) -> Account:
    return Account(name=name, kind=kind.value, adaptive_indexes=is_adaptive_by_default(kind), **fields)


def ensure(declared: Iterable[AccountKeys]) -> None:
    """Create or update the declared accounts; other accounts do not change."""
    for keys in declared:
        _check_name(keys.name)
        _check_keys(keys)
        account = Account.objects.filter(name=keys.name).first()
        if account is not None:
            if account.kind != keys.kind:
                raise AccountKindIsFixed(
                    Reason.ACCOUNT_KIND_IS_FIXED, account=keys.name, kind=account.kind, wanted=keys.kind
                )
            primary, secondary = keys_of(account)
            if primary == keys.primary and keys.secondary in (None, secondary):
                continue
        with invalidating_catalogs():
            former = _locked_or_none(keys.name)
            account = _store(former or _new(keys.name, keys.kind), keys)
            verb = Verb.ACCOUNT_CREATE if former is None else Verb.KEY_ROTATE
            activity.record(verb, SERVER, account=account, detail={"declared": True})


def rotate(name: str, which: int, *, by: Actor = SERVER, grace: timedelta = NO_GRACE) -> Account:
    """Regenerate key 1 or 2. Whatever the old key signed is accepted until the grace period ends.

    Without a grace period, as in the service, the old key and older keys of the same number are refused at once.
    """
    now = timezone.now()
    with invalidating_catalogs():
        account = _locked(name)
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
        setattr(account, field, _seal(name, generate_key()))
        account.save(update_fields=(field,))
        detail = {"key": f"key{which}"}
        if grace:
            detail["accepted_until"] = (now + grace).isoformat()
        activity.record(Verb.KEY_ROTATE, by, account=account, detail=detail)
    return account


class Settings(TypedDict, total=False):
    """The settings of an account that can be changed."""

    label: str
    description: str
    colour: str
    protected: bool
    read_only: bool
    adaptive_indexes: bool  # whether the server adds and drops indexes of properties
    distributes: bool  # whether new tables are spread over the nodes of a cluster
    history_days: int  # how long changes of entities are kept; 0: history is off
    history_bytes: int | None  # what they may take on disk; None: a share of it
    consistency: str  # of reads that do not ask for less: storage.domain.service.consistency
    max_staleness: int  # seconds by which reads may be behind at BoundedStaleness
    enabled: bool
    shared_key_access: (
        bool  # whether requests signed with a key are accepted; those with a bearer token always are
    )
    networks: list[str]  # addresses and networks that may send requests; empty: all
    labels: dict[str, str]
    expires_at: datetime | None


SETTINGS: Final = tuple(Settings.__annotations__)
_IN_CATALOGS: Final = frozenset(
    {
        "read_only",
        "enabled",
        "shared_key_access",
        "networks",
        "expires_at",
        "history_days",
        "consistency",
        "max_staleness",
    }
)
HISTORY_DAYS_LIMIT: Final = 366
LEAST_HISTORY: Final = 16 << 20  # bytes
_DROPPED_TOGETHER: Final = 100  # tables; looking at locks takes longer the more a transaction has


def change(account: Account, *, by: Actor = SERVER, **fields: Unpack[Settings]) -> Activity | None:
    """Set some settings and update ``account``; return None when nothing changed."""
    return set_fields(account.name, fields, by=by, seen=account)


def set_fields(
    name: str,
    fields: Mapping[str, object],
    *,
    by: Actor = SERVER,
    seen: Account | None = None,
    undoes: Activity | None = None,
) -> Activity | None:
    """Set settings and update ``seen``; raises ChangedSince if ``undoes`` is not the last change."""
    _check_settings(fields)
    if seen is not None and fields.get("history_days") == 0:
        snapshot_copies.copy_outstanding(seen)  # before the lock, so that no request waits for it
    with invalidating_catalogs() if _IN_CATALOGS & fields.keys() else transaction.atomic():
        account = _locked(name)
        if long_operations.unfinished(account) is not None:
            raise busy(name)
        before = {field: getattr(account, field) for field in fields}
        if undoes is not None and _in_json(before) != undoes.after:
            raise activity.ChangedSince
        for field, value in fields.items():
            setattr(account, field, value)
        changed = [field for field, value in before.items() if value != fields[field]]
        if not changed:
            return None
        _thaw_or_refuse(account, fields, timezone.now())
        account.save(update_fields=(*changed, "enabled", "frozen_at"))
        if "history_days" in changed:
            _switch_history(account)
        done = activity.record(
            Verb.ACCOUNT_CHANGE,
            by,
            account=account,
            before=_in_json({field: before[field] for field in changed}),
            after=_in_json({field: fields[field] for field in changed}),
            undoes=undoes,
        )
    if seen is not None:
        for field in (*changed, "enabled", "frozen_at"):
            setattr(seen, field, getattr(account, field))
    return done


def _switch_history(account: Account) -> None:
    if not account.history_days:
        snapshot_copies.copy_outstanding(account)
        history.end(account)
    elif not history.is_available():
        raise AccountError(Reason.HISTORY_NEEDS_POSTGRESQL_18)
    elif not history.is_recorded(account):
        history.start(account)


def _thaw_or_refuse(account: Account, fields: Mapping[str, object], now: datetime) -> None:
    """Thaw an expired account that gets a new lifetime; raise AccountExpired for enabling it without one."""
    is_over = account.expires_at is not None and account.expires_at <= now
    if fields.get("enabled") and is_over:
        raise AccountExpired(Reason.ACCOUNT_EXPIRED, account=account.name)
    if account.frozen_at is not None and not is_over:
        account.frozen_at = None
        account.enabled = True


def read_settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings from an activity, where they are JSON."""
    found = dict(written)
    if found.get("expires_at") is not None:
        found["expires_at"] = datetime.fromisoformat(found["expires_at"])
    return found


def _in_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    if "expires_at" in fields:
        return {**fields, "expires_at": _written(fields["expires_at"])}
    return dict(fields)


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def expire(now: datetime) -> None:
    """Freeze expired accounts, and delete those whose purge delay is over.

    A failure with one account does not stop the others; all failures are raised together at the end.
    """
    late = Account.objects.filter(expires_at__lte=now, frozen_at=None)
    over = Account.objects.filter(
        frozen_at__lte=now - lifetimes.PURGE_DELAY, protected=False, read_only=False
    )
    failed: list[Exception] = []
    for act, found in ((_freeze, late), (_purge, over)):
        for name in found.values_list("name", flat=True):
            try:
                act(name, now)
            except Exception as error:
                failed.append(error)
    if failed:
        raise ExceptionGroup("Not every expired account could be frozen or deleted", failed)


def _freeze(name: str, now: datetime) -> None:
    with invalidating_catalogs():
        account = _locked_or_none(name)
        if account is None or account.expires_at is None or account.expires_at > now:
            return  # its lifetime was extended meanwhile
        before = account.enabled
        account.frozen_at, account.enabled = now, False
        account.save(update_fields=("frozen_at", "enabled"))
        activity.record(
            Verb.ACCOUNT_EXPIRE,
            SERVER,
            account=account,
            before={"enabled": before},
            after={"enabled": False},
            detail={"expires_at": _written(account.expires_at)},
        )


def _purge(name: str, now: datetime) -> None:
    def may_be_purged(account: Account) -> bool:
        return account.purged_at is not None and account.purged_at <= now

    with _dropping_many_tables(name, may_be_purged, by=SERVER), invalidating_catalogs():
        account = _locked_or_none(name)
        if account is not None and may_be_purged(account):
            _remove(name, with_tables=True, by=SERVER)


def _check_settings(fields: Mapping[str, object]) -> None:
    unknown = fields.keys() - set(SETTINGS)
    assert not unknown, unknown
    labels, networks = fields.get("labels", {}), fields.get("networks", ())
    assert isinstance(labels, Mapping)
    assert isinstance(networks, Sequence)
    try:
        check_labels(labels)
    except LabelError as error:
        raise AccountError(error.refusal) from None
    _check_history(fields)
    if fields.get("distributes") and not table_relations.can_distribute():
        raise AccountError(Reason.NO_COORDINATOR_FOR_NEW_TABLES)
    _check_consistency(fields)
    for text in networks:
        if read_network(text) is None:
            raise AccountError(Reason.NETWORK_MALFORMED, text=text)


def _check_history(fields: Mapping[str, object]) -> None:
    days, size = fields.get("history_days", 0), fields.get("history_bytes")
    assert isinstance(days, int)
    if not 0 <= days <= HISTORY_DAYS_LIMIT:
        raise AccountError(Reason.HISTORY_DAYS, most=HISTORY_DAYS_LIMIT)
    if size is not None and (not isinstance(size, int) or size < LEAST_HISTORY):
        raise AccountError(Reason.HISTORY_BYTES, least=LEAST_HISTORY >> 20)


def _check_consistency(fields: Mapping[str, object]) -> None:
    level, bound = fields.get("consistency"), fields.get("max_staleness", 1)
    if level is not None and level not in list(Consistency):
        raise AccountError(Reason.UNKNOWN_CONSISTENCY, level=level, levels=", ".join(Consistency))
    if not isinstance(bound, int) or not 1 <= bound <= STALENESS_LIMIT:
        raise AccountError(Reason.STALENESS, most=STALENESS_LIMIT)


def networks_of(account: Account) -> tuple[Network, ...]:
    return tuple(network for network in map(read_network, account.networks) if network is not None)


def remove(name: str, *, with_tables: bool = False, by: Actor = SERVER, only: Account | None = None) -> None:
    """Delete an account; raises AccountError if it is protected, or if it has tables and may not lose them.

    With ``only``, another account that has taken its name stays. A process that dies meanwhile has deleted nothing, or
    another one completes the deletion.
    """

    def may_be_deleted(account: Account) -> bool:
        return with_tables and only in (None, account) and not (account.protected or account.read_only)

    with _dropping_many_tables(name, may_be_deleted, by=by), invalidating_catalogs():
        _remove(name, with_tables=with_tables, by=by, only=only)


@contextmanager
def _dropping_many_tables(
    name: str, may_be_deleted: Callable[[Account], bool], *, by: Actor
) -> Iterator[None]:
    """Drop tables of an account in transactions of their own until few are left, before the block deletes it.

    PostgreSQL locks whatever a transaction drops, and has room for the locks of some thousand tables.
    """
    if not _has_many_tables(name):
        yield
        return
    with long_operations.holding_account(name) as lock:
        if lock is None:
            raise busy(name)
        while _has_many_tables(name):
            with invalidating_catalogs():
                account = _locked(name)
                if not may_be_deleted(account):
                    break
                _drop_some_tables(account, lock, by)
        yield


def _has_many_tables(name: str) -> bool:
    return Table.objects.filter(account__name=name).count() > _DROPPED_TOGETHER


def _drop_some_tables(account: Account, lock: int, by: Actor) -> None:
    deletion = long_operations.Operation.resume(Verb.ACCOUNT_DELETE, account, lock, by=by)
    found = list(Table.objects.filter(account=account).order_by("pk")[:_DROPPED_TOGETHER])
    _drop(found)
    Table.objects.filter(pk__in=[table.pk for table in found]).delete()
    names = [table.name for table in found if table.is_own]
    deletion.save({"tables": [*deletion.detail.get("tables", ()), *names]})


def busy(name: str) -> AccountIsBusy:
    return AccountIsBusy(Reason.ACCOUNT_BUSY, account=name)


def _drop(tables: Iterable[Table]) -> None:
    for table in tables:
        if table.deleted_at is None:
            table_relations.soft_delete(table)
        table_relations.drop(table)


def _remove(name: str, *, with_tables: bool, by: Actor, only: Account | None = None) -> None:
    # also against new tables: waits for those being created
    Account.objects.select_for_update().filter(name=name).first()
    account = _locked(name)
    if only not in (None, account):
        return
    if account.protected:
        raise AccountIsProtected(Reason.ACCOUNT_PROTECTED, account=name)
    names = list(Table.objects.own().filter(account=account).values_list("name", flat=True))
    if names and not with_tables:
        raise AccountHasTables(Reason.ACCOUNT_HAS_TABLES, account=name, number=len(names))
    if names and account.read_only:
        raise AccountError(Reason.READ_ONLY_ACCOUNT_HAS_TABLES, account=name, number=len(names))
    # deleted tables that could be restored included
    _drop(Table.objects.filter(account=account))
    for snapshot in Snapshot.objects.filter(account=account):
        snapshot_copies.drop_relations(snapshot)
    history.remove(account)
    before = _in_json({field: getattr(account, field) for field in SETTINGS})
    dropped = long_operations.saved(Verb.ACCOUNT_DELETE, account).get("tables", ())
    activity.record(
        Verb.ACCOUNT_DELETE, by, account=account, before=before, detail={"tables": sorted([*dropped, *names])}
    )
    account.delete()


def check_writable(account_id: int) -> str:
    """Return the name of an account; raises InsufficientAccountPermissions if it is read-only.

    The service has no read-only accounts; this is its documented 403 code for accounts that refuse writes [inferred].
    """
    found = Account.objects.filter(pk=account_id).values_list("name", "read_only").first()
    if found is None:
        raise ServerBusy  # it was deleted, and may be created again
    name, is_read_only = found
    if is_read_only:
        raise InsufficientAccountPermissions
    return name


@lru_cache(maxsize=4096)
def kind_of(account_id: int) -> AccountKind:
    """Return the kind of an account, which never changes; raises ServerBusy if the account is deleted."""
    found = Account.objects.filter(pk=account_id).values_list("kind", flat=True).first()
    if found is None:
        raise ServerBusy
    return AccountKind(found)


def require_storage(account_id: int) -> None:
    """Raise MethodNotAllowed for an account of the kind cosmos, which has no policies and service properties."""
    if kind_of(account_id) is AccountKind.COSMOS:
        raise MethodNotAllowed


def usable() -> QuerySet[Account]:
    """Select the accounts that this server may use, disabled ones included."""
    found = Account.objects.all()
    return found if settings.DEVELOPMENT_ACCOUNT_ALLOWED else found.exclude(pk__in=_public_accounts.find())


class _PublicAccounts:
    """The accounts with the public key. A server that refuses them gets no new ones, so keys are opened once."""

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
    """Return an account that this server may use; None also for an invalid name."""
    if not is_account_name(name):
        return None
    account = Account.objects.filter(name=name).first()
    return None if account is None or _is_refused(account) else account


def is_public(account: Account) -> bool:
    """Return whether one of its keys is the published development key, as far as they can be read."""
    try:
        return DEVELOPMENT_KEY in keys_of(account)
    except SealedOtherwise:
        return False


def connection_string(account: Account, endpoint: str) -> str:
    """Return a connection string that is safe to print: it contains a key only if that is public."""
    key = encode_key(DEVELOPMENT_KEY) if is_public(account) else "(see: account list --keys)"
    return connections.connection_string(account.name, endpoint, key)


def listed() -> QuerySet[Account]:
    """Select all accounts by name, including those that this server may not use."""
    return Account.objects.order_by("name")


def by_name(name: str) -> Account | None:
    """Return an account, also one that this server may not use."""
    return Account.objects.filter(name=name).first()


def read_only() -> set[int]:
    """Return the primary keys of accounts that are read-only."""
    return set(Account.objects.filter(read_only=True).values_list("pk", flat=True))


def count_by_consistency() -> dict[str, int]:
    """Return how many accounts have each level of consistency."""
    return dict(Account.objects.values_list("consistency").annotate(Count("pk")))


def names() -> set[str]:
    """Return the names of all accounts, including those that this server may not use."""
    return set(Account.objects.values_list("name", flat=True))


def keys_of(account: Account) -> tuple[bytes, bytes]:
    """Raises AccountError when they were sealed with another secret."""
    return (
        _unseal(account.name, bytes(account.primary_key_sealed)),
        _unseal(account.name, bytes(account.secondary_key_sealed)),
    )


def key_of(account: Account, which: int) -> bytes:
    """Return key 1 or 2; raises AccountError when it was sealed with another secret."""
    return unseal(account, account.primary_key_sealed if which == 1 else account.secondary_key_sealed)


def unseal(account: Account, sealed: bytes | memoryview) -> bytes:
    """Return a key of this account in the clear; raises SealedOtherwise when another secret has sealed it."""
    return _unseal(account.name, bytes(sealed))


def encode_key(key: bytes) -> str:
    return base64.b64encode(key).decode()


def decode_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise AccountError(Reason.KEY_NOT_BASE64)
    return key


def generate_key() -> bytes:
    return os.urandom(KEY_LENGTH)


def check_secret() -> None:
    """Raises AccountError when stored keys were sealed with another secret than this server's."""
    unreadable = [account.name for account in Account.objects.order_by("name") if not _is_readable(account)]
    if unreadable:
        some = ", ".join(unreadable[:3]) + (", ..." if len(unreadable) > 3 else "")
        raise SealedOtherwise(Reason.KEYS_SEALED_OTHERWISE, accounts=some, first=unreadable[0])


def _is_readable(account: Account) -> bool:
    try:
        keys_of(account)
    except SealedOtherwise:
        return False
    return True


def _read_account(text: str) -> AccountKeys:
    named, *keys = text.split(":")
    name, _, kind = named.partition("@")
    if not 1 <= len(keys) <= 2:
        raise AccountError(Reason.DECLARATION_MALFORMED, account=name)
    if kind not in ("", *AccountKind):
        raise AccountError(Reason.UNKNOWN_KIND, account=name, kind=kind)
    return AccountKeys(
        name, decode_key(keys[0]), decode_key(keys[1]) if keys[1:] else None, AccountKind(kind or "storage")
    )


def _check_name(name: str) -> None:
    if not is_account_name(name):
        raise AccountError(Reason.ACCOUNT_NAME, account=name)


def _check_keys(keys: AccountKeys) -> None:
    if DEVELOPMENT_KEY in (keys.primary, keys.secondary) and not settings.DEVELOPMENT_ACCOUNT_ALLOWED:
        raise AccountError(Reason.PUBLIC_KEY, account=keys.name, development=DEVELOPMENT_ACCOUNT)


def _is_refused(account: Account) -> bool:
    return not settings.DEVELOPMENT_ACCOUNT_ALLOWED and is_public(account)


def _locked_or_none(name: str) -> Account | None:
    # no_key: rows that reference the account can still be written
    return Account.objects.select_for_update(no_key=True).filter(name=name).first()


def lock(account: Account) -> None:
    """Lock an account against deletion until the transaction ends; raises ServerBusy if it is deleted."""
    if Account.objects.select_for_update(no_key=True).filter(pk=account.pk).first() is None:
        raise ServerBusy


def _locked(name: str) -> Account:
    account = _locked_or_none(name)
    if account is None:
        raise AccountError(Reason.NO_ACCOUNT, account=name)
    return account


def _store(account: Account, keys: AccountKeys) -> Account:
    account.primary_key_sealed = _seal(account.name, keys.primary)
    if keys.secondary or not account.secondary_key_sealed:
        account.secondary_key_sealed = _seal(account.name, keys.secondary or generate_key())
    is_new = account.pk is None
    account.save()
    if is_new and account.history_days:
        history.start(account, is_new=True)
    return account


def _seal(name: str, key: bytes) -> bytes:
    # authenticated with the name, so that the keys of one row do not open in another
    nonce = os.urandom(NONCE_LENGTH)
    return nonce + _cipher().encrypt(nonce, key, name.encode())


def _unseal(name: str, sealed: bytes) -> bytes:
    try:
        return _cipher().decrypt(sealed[:NONCE_LENGTH], sealed[NONCE_LENGTH:], name.encode())
    except InvalidTag:
        raise SealedOtherwise(Reason.ACCOUNT_SEALED_OTHERWISE, account=name) from None


def _cipher() -> AESGCM:
    if settings.SERVER_SECRET is None:
        raise AccountError(Reason.NO_SECRET)
    return _cipher_of(settings.SERVER_SECRET)


@lru_cache(maxsize=1)
def _cipher_of(secret: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=b"tablero account keys").derive(secret))
