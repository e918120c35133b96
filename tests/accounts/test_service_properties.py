"""The service properties of an account as they are kept."""

from dataclasses import replace

import pytest

from storage.accounts import accounts, removal, service_properties
from storage.domain.errors import ServerBusy
from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.models import Account

pytestmark = pytest.mark.django_db(transaction=True)

RULE = CorsRule(("https://a.example", "*"), ("GET", "PUT"), ("x-ms-*",), (), 60)
ALL = ServiceProperties(
    Logging(read=True, write=True, delete=False, retention=365),
    Metrics(enabled=True, include_apis=False, retention=1),
    Metrics(enabled=True, include_apis=True),
    (RULE, replace(RULE, max_age=0)),
)


@pytest.fixture
def account():
    return accounts.add("propertied")


def put(properties):
    return lambda former: properties


def test_come_back_as_they_were_set(account):
    other = accounts.add("unpropertied")
    assert Account.objects.get(pk=account.pk).service_properties is None
    for properties in (ALL, DEFAULT_PROPERTIES, ServiceProperties(hour_metrics=Metrics()), ALL):
        service_properties.replace(account, put(properties))

        assert service_properties.get(account) == properties
        assert service_properties.for_account(Account.objects.get(pk=account.pk)) == properties
    service_properties.replace(account, PropertiesUpdate(cors=()).apply)
    assert service_properties.get(account) == replace(ALL, cors=())
    assert service_properties.get(other) == DEFAULT_PROPERTIES


def test_an_account_that_is_gone_has_none(account):
    removal.remove("propertied")

    with pytest.raises(ServerBusy):
        service_properties.get(account)
    with pytest.raises(ServerBusy):
        service_properties.replace(account, put(ALL))
