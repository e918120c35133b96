"""The service properties of an account."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from storage.accounts import accounts
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.actor import SERVER, Actor
from storage.domain.errors import ServerBusy
from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    ServiceProperties,
    check_properties,
)
from storage.domain.values.kinds import AccountKind
from storage.models import Account, Activity

# without logging, metrics and CORS
COSMOS_PROPERTIES: Final = ServiceProperties(hour_metrics=Metrics(enabled=False))


def for_account(account: Account) -> ServiceProperties:
    return for_kind(account.kind, account.service_properties)


def for_kind(kind: str, stored: Any) -> ServiceProperties:
    """Return the service properties of an account by its kind and their stored form."""
    return COSMOS_PROPERTIES if kind == AccountKind.COSMOS else read_stored(stored)


def read_stored(stored: Any) -> ServiceProperties:
    """Parse stored service properties; None stands for the defaults."""
    return DEFAULT_PROPERTIES if stored is None else read(stored)


def get(account: Account) -> ServiceProperties:
    """Get Table Service Properties as they are now."""
    stored = Account.objects.filter(pk=account.pk).first()
    if stored is None:
        raise ServerBusy
    return for_account(stored)


def replace(
    account: Account,
    update: Callable[[ServiceProperties], ServiceProperties],
    *,
    by: Actor = SERVER,
    undoes: Activity | None = None,
) -> Activity | None:
    """Set Table Service Properties to the result of ``update``, effective from the next request on."""
    accounts.require_storage(account)
    former = get(account)
    properties = update(former)
    check_properties(properties)
    if undoes is None and properties == former:
        return None  # without a change, no catalog needs to be invalidated
    with invalidating_catalogs():
        stored = Account.objects.select_for_update().filter(pk=account.pk).first()
        if stored is None:
            raise ServerBusy
        accounts.check_writable(stored)
        former = for_account(stored)
        if undoes is not None and write(former) != undoes.after:
            raise activity.ChangedSince
        properties = update(former)
        check_properties(properties)
        stored.service_properties = write(properties)
        stored.save(update_fields=("service_properties",))
        return activity.record(
            AccountVerb.PROPERTIES_SET,
            by,
            account=stored,
            before=write(former),
            after=write(properties),
            undoes=undoes,
        )


def write(properties: ServiceProperties) -> dict[str, Any]:
    """Write properties as they are stored: JSON, with lists for tuples."""
    stored: dict[str, Any] = json.loads(json.dumps(asdict(properties)))
    return stored


def read(stored: Any) -> ServiceProperties:
    return ServiceProperties(
        Logging(**stored["logging"]),
        Metrics(**stored["hour_metrics"]),
        Metrics(**stored["minute_metrics"]),
        tuple(_read_rule(rule) for rule in stored["cors"]),
    )


def _read_rule(stored: Any) -> CorsRule:
    return CorsRule(
        tuple(stored["origins"]),
        tuple(stored["methods"]),
        tuple(stored["allowed_headers"]),
        tuple(stored["exposed_headers"]),
        stored["max_age"],
    )
