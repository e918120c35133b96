"""The facts that the inspector may use: the accounts whose keys its user may see."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property, partial

from storage.domain.access.policies import AccessPolicy
from storage.domain.requests.observed import KEY_NAMES, retired_key_name
from storage.inspector import Facts, Key, ManagedAccount
from storage.inspector.facts import Parameters
from storage.models import Account, BlockedSas, RegisteredSas, StoredAccessPolicy, Table
from storage.operations import accounts, retired_keys, usage


def facts(
    managed: Iterable[Account],
    now: datetime,
    *,
    scheme: str,
    host: str,
    client: str,
    suffixes: tuple[str, ...] = (),
    takes_bearer: bool = False,
) -> Facts:
    """Collect the facts for an inspection; it learns nothing of accounts that are not ``managed``."""
    known = {account.name: _managed(account, now) for account in managed}
    return Facts(
        known,
        now.timestamp(),
        scheme,
        client,
        host,
        suffixes,
        Key("", accounts.DEVELOPMENT_KEY),
        takes_bearer=takes_bearer,
    )


def _managed(account: Account, now: datetime) -> ManagedAccount:
    return ManagedAccount(
        account.name,
        (*_keys(account), *_old_keys(account, now)),
        _Policies(account),
        partial(_known, account),
        _Blocked(account),
        accounts.networks_of(account),
        is_enabled=account.enabled,
        accepts_keys=account.shared_key_access,
        is_read_only=account.read_only,
    )


def _keys(account: Account) -> Iterator[Key]:
    for name, key in zip(KEY_NAMES, accounts.keys_of(account), strict=True):
        yield Key(name, key)


def _old_keys(account: Account, now: datetime) -> Iterator[Key]:
    for retired, key in retired_keys.opened_of(account, retired_keys.for_account(account)):
        yield Key(retired_key_name(retired.number), key, is_accepted=retired.accepted_until > now)


class _Policies(Mapping[str, Mapping[str, AccessPolicy]]):
    """The policies of every table, read on first use: most inspections concern one account of many."""

    def __init__(self, account: Account) -> None:
        self._account = account

    @cached_property
    def _found(self) -> Mapping[str, Mapping[str, AccessPolicy]]:
        names = Table.objects.own().filter(account=self._account).values_list("folded_name", flat=True)
        found: dict[str, dict[str, AccessPolicy]] = {name: {} for name in names}
        stored = StoredAccessPolicy.objects.filter(
            table__account=self._account, table__deleted_at=None
        ).select_related("table")
        for policy in stored:
            terms = AccessPolicy(policy.start, policy.expiry, policy.permission)
            found.setdefault(policy.table.folded_name, {})[policy.identifier] = terms
        return found

    def __getitem__(self, table: str) -> Mapping[str, AccessPolicy]:
        return self._found[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _known(account: Account, fingerprint: str) -> Parameters | None:
    """Return the parameters of a token that was issued or used here."""
    issued = RegisteredSas.objects.filter(account=account, fingerprint=fingerprint)
    parameters = issued.values_list("parameters", flat=True).first()
    if parameters is None:
        return usage.parameters(account.pk, fingerprint)
    return tuple((name, value) for name, value in parameters)


class _Blocked:
    def __init__(self, account: Account) -> None:
        self._account = account

    def __contains__(self, fingerprint: object) -> bool:
        return BlockedSas.objects.filter(account=self._account, fingerprint=fingerprint).exists()
