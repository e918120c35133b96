"""Facts for the inspector, limited to accounts whose keys the user may see."""

from collections.abc import Container, Iterable
from datetime import datetime
from functools import partial
from typing import cast

from django.utils.functional import SimpleLazyObject

from storage.access import retired_keys, sas
from storage.accounts import account_settings, sealed_keys
from storage.domain.requests.observed import KEY_NAMES, retired_key_name
from storage.domain.sas.known import Policies
from storage.domain.values.kinds import AccountKind
from storage.inspector import Facts, Key, ManagedAccount
from storage.inspector.facts import Parameters
from storage.metrics import usage
from storage.models import Account, BlockedSas, RegisteredSas, Table


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
    """Collect the facts for an inspection of the ``managed`` accounts."""
    known = {account.name: _managed(account, now) for account in managed}
    return Facts(
        known,
        now.timestamp(),
        scheme,
        client,
        host,
        suffixes,
        Key("", sealed_keys.DEVELOPMENT_KEY),
        takes_bearer=takes_bearer,
    )


def _managed(account: Account, now: datetime) -> ManagedAccount:
    old = retired_keys.opened_of(account, retired_keys.for_account(account))
    return ManagedAccount(
        account.name,
        (
            *map(Key, KEY_NAMES, sealed_keys.keys_of(account)),
            *(Key(retired_key_name(key.number), value, key.accepted_until > now) for key, value in old),
        ),
        # read on first use: most inspections concern one account of many
        cast("Policies", SimpleLazyObject(partial(_policies, account))),
        partial(_known, account),
        cast("Container[str]", SimpleLazyObject(partial(_blocked, account))),
        account_settings.networks_of(account),
        is_enabled=account.enabled,
        accepts_keys=account.shared_key_access,
        is_read_only=account.read_only,
        kind=AccountKind(account.kind),
    )


def _policies(account: Account) -> Policies:
    """Return the policies of every table by its name in lower case, including tables without any."""
    names = Table.objects.existing().filter(account=account).values_list("folded_name", flat=True)
    return {**{name.lower(): {} for name in names}, **sas.policies_of(account)}


def _blocked(account: Account) -> Container[str]:
    return frozenset(BlockedSas.objects.filter(account=account).values_list("fingerprint", flat=True))


def _known(account: Account, fingerprint: str) -> Parameters | None:
    """Return the parameters of a SAS token issued or used here; None if it is unknown."""
    issued = RegisteredSas.objects.filter(account=account, fingerprint=fingerprint)
    parameters = issued.values_list("parameters", flat=True).first()
    if parameters is None:
        return usage.parameters(account.pk, fingerprint)
    return tuple((name, value) for name, value in parameters)
