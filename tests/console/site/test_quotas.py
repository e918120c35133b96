"""Quotas: they are never exceeded, not even by concurrent requests, and the console shows the usage."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from html import unescape

import pytest
from django.conf import settings as configured
from django.db import connection
from django.utils.html import strip_tags

from console.grid import saved_urls
from console.models import SavedQuery
from console.queries import saved_changes
from console.queries.saved import Definition
from storage.access import sas
from storage.access.sas import SasDescription
from storage.accounts import account_settings, quotas
from storage.accounts.quotas import QuotaReached
from storage.core import quotas as declarations
from storage.core.quotas import Quota
from storage.domain.access.actor import SERVER
from storage.domain.access.roles import Scope
from storage.domain.refusals import Reason, Refused
from storage.domain.sas import TableSas
from storage.models import ApiToken, RegisteredSas
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.snapshots import snapshots
from storage.tables import tables

MOST = 2


@pytest.fixture
def few(monkeypatch):
    """Set all quotas of the server to two."""
    monkeypatch.setattr(configured, "QUOTAS", dict.fromkeys(configured.QUOTAS, MOST))


@pytest.fixture
def issue(account, add_entity):
    def issue(number):
        token = TableSas(
            version="2019-02-02", table="people", permissions="r", expiry=f"20{70 + number}-01-01T00:00:00Z"
        )
        return sas.issue(account, token, 1, SasDescription(f"number {number}"), by=SERVER)

    return issue


@pytest.fixture
def save(account, add_entity, cast):
    def save(number, owner="alice"):
        table = tables.get(account, "people")
        definition = Definition(f"number {number}", content={"f": ""})
        return saved_changes.create_query(table, definition, owner=cast[owner], by=SERVER)

    return save


def text_of(answer):
    return " ".join(unescape(strip_tags(answer.content.decode())).split())


def test_every_quota_is_an_option():
    declared = {it for it in vars(declarations).values() if isinstance(it, Quota)}
    assert not declared - set(declarations.QUOTAS), "name these in QUOTAS of storage/core/quotas.py"


@pytest.mark.django_db(transaction=True)
def test_no_more_even_if_several_are_made_at_once(few, issue, save, cast):
    def add_token(number):
        api_tokens.issue(cast["max"], TokenRequest(f"number {number}", Scope.READ), by=SERVER)

    def run(make, number):
        try:
            with suppress(Refused):
                make(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        for make in (issue, save, add_token):
            list(pool.map(run, [make] * 5, range(5)))
    assert RegisteredSas.objects.count() == SavedQuery.objects.count() == ApiToken.objects.count() == MOST
    with pytest.raises(QuotaReached) as refused:
        issue(5)
    assert str(refused.value) == "The account acme can have at most 2 SAS tokens that have not expired."
    issue(int(RegisteredSas.objects.first().label[-1]))  # the same token again is no other one


@pytest.mark.django_db
def test_an_account_may_have_a_lower_quota_of_its_own(account, save):
    account_settings.change(account, saved_query_limit=1, snapshot_limit=20_000 // 2)
    save(1)
    with pytest.raises(QuotaReached, match=r"at most 1 saved queries\. Delete one first"):
        save(2, owner="eve")
    assert snapshots.allowance(account) == (0, 100)


@pytest.mark.django_db
def test_a_restored_query_counts(few, account, save, cast):
    deletion = saved_changes.delete_query(save(1), by=SERVER)
    for number in (2, 3):
        save(number)
    with pytest.raises(QuotaReached) as refused:
        saved_changes.undo(deletion, by=SERVER)
    assert refused.value.refusal.reason is Reason.TOO_MANY_OWN_QUERIES


@pytest.mark.django_db
def test_the_oldest_saved_urls_make_room(few, account, add_entity):
    table = tables.get(account, "people")
    first, *others = (saved_urls.keep(table, f"f={number}") for number in range(MOST + 1))
    assert saved_urls.find(table, first.key) is None
    assert all(saved_urls.find(table, it.key) for it in others)


@pytest.mark.django_db
def test_labels(account):
    labels = {f"l{number}": "" for number in range(32)}
    quotas.check_all_labels(labels)
    with pytest.raises(Refused, match="at most 32"):
        account_settings.change(account, labels={**labels, "more": ""})


@pytest.mark.django_db
def test_the_console_shows_them_where_one_makes_them(few, visit, issue, save, account):
    issue(1)
    save(1)
    alice = visit("alice")
    for page in ("/ui/a/acme/sas/new/", "/ui/a/acme/t/people/queries/new/"):
        assert "1 of 2 used" in text_of(alice.get(page)), page
    assert "0 of 2 used" in text_of(alice.get("/ui/a/acme/snapshots/new/"))
    assert "Saved queries 1 of 2 used" in text_of(alice.get("/ui/a/acme/settings/"))

    alice.post("/ui/a/acme/settings/", {"form": "quotas", "sas_limit": "1"})
    account.refresh_from_db()
    assert account.sas_limit == 1


@pytest.mark.django_db
def test_the_console_refuses_one_more_query(few, visit, save):
    save(1)
    save(2)
    values = {"name": "Third", "filter": "", "keeps_view": "on", "state": ""}
    refused = visit("alice").post("/ui/a/acme/t/people/queries/new/", values)
    assert refused.status_code == 422
    assert "You can have at most 2 saved queries. Delete one first." in text_of(refused)
