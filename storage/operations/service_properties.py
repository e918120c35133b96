"""The service properties of an account."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from storage.domain.errors import ServerBusy
from storage.domain.service_properties import (
    DEFAULT,
    CorsRule,
    Logging,
    Metrics,
    ServiceProperties,
    check,
)
from storage.models import Account
from storage.operations.heeded import heeded


def of(account: Account) -> ServiceProperties:
    stored = account.service_properties
    return DEFAULT if stored is None else _read(stored)


def get(account_id: int) -> ServiceProperties:
    """Get Table Service Properties."""
    account = Account.objects.filter(pk=account_id).first()
    if account is None:
        raise ServerBusy
    return of(account)


def replace(account_id: int, update: Callable[[ServiceProperties], ServiceProperties]) -> None:
    """Set Table Service Properties: what ``update`` makes of those there are, for every request from here on."""
    former = get(account_id)
    properties = update(former)
    check(properties)
    if properties == former:
        return  # what is saved as it was need not keep anybody waiting
    with heeded():
        account = Account.objects.select_for_update().filter(pk=account_id).first()
        if account is None:
            raise ServerBusy
        properties = update(of(account))
        check(properties)
        account.service_properties = asdict(properties)
        account.save(update_fields=("service_properties",))


def _read(stored: Any) -> ServiceProperties:
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
