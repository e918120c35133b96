"""The service properties of an account as they are kept."""

import json
from dataclasses import replace

import pytest
from django.conf import settings

from storage.domain.errors import InvalidXmlDocument, ServerBusy
from storage.domain.service.service_properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    ServiceProperties,
)
from storage.models import Account
from storage.operations import accounts, service_properties
from storage.operations.catalog import Catalog
from storage.operations.threads import in_thread

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
    return accounts.add("propertied").pk


def put(properties):
    return lambda former: properties


def test_a_new_account_has_the_usual_ones(account):
    assert service_properties.get(account) == DEFAULT_PROPERTIES
    assert Account.objects.get(pk=account).service_properties is None


def test_come_back_as_they_were_set(account):
    for properties in (ALL, DEFAULT_PROPERTIES, ServiceProperties(hour_metrics=Metrics()), ALL):
        service_properties.replace(account, put(properties))

        assert service_properties.get(account) == properties
        assert service_properties.for_account(Account.objects.get(pk=account)) == properties


def test_are_kept_as_json(account):
    service_properties.replace(account, put(ALL))

    stored = Account.objects.get(pk=account).service_properties
    assert json.loads(json.dumps(stored)) == stored
    assert stored["cors"][0]["origins"] == ["https://a.example", "*"]


def test_an_update_sees_what_is_there(account):
    service_properties.replace(account, put(ALL))

    service_properties.replace(account, PropertiesUpdate(cors=()).apply)

    assert service_properties.get(account) == replace(ALL, cors=())


def test_refused_ones_leave_the_others_in_place(account):
    service_properties.replace(account, put(ALL))

    with pytest.raises(InvalidXmlDocument):
        service_properties.replace(account, put(replace(ALL, cors=(RULE,) * 6)))

    assert service_properties.get(account) == ALL


def test_other_settings_of_the_account_stay(account):
    before = Account.objects.get(pk=account)

    service_properties.replace(account, put(ALL))

    after = Account.objects.get(pk=account)
    assert accounts.keys_of(after) == accounts.keys_of(before)
    assert (after.enabled, after.shared_key_access) == (True, True)


def test_belong_to_one_account(account):
    other = accounts.add("unpropertied").pk
    service_properties.replace(account, put(ALL))

    assert service_properties.get(other) == DEFAULT_PROPERTIES


def test_an_account_that_is_gone_has_none(account):
    accounts.remove("propertied")

    with pytest.raises(ServerBusy):
        service_properties.get(account)
    with pytest.raises(ServerBusy):
        service_properties.replace(account, put(ALL))


async def test_count_at_once_for_whoever_keeps_a_snapshot():
    account = await in_thread(accounts.add, "heedful")
    catalog = Catalog(settings.LANES_CONNINFO)
    await catalog.open()
    try:
        for properties in (DEFAULT_PROPERTIES, ALL, DEFAULT_PROPERTIES):
            await in_thread(service_properties.replace, account.pk, put(properties))

            assert (await catalog.account("heedful")).properties == properties
    finally:
        await catalog.close()
