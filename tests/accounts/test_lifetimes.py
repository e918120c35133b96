"""Accounts that are made for a while, in the console: their end is set, shown and put off."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from storage.accounts import account_settings, accounts, expiry, removal
from storage.domain.access.actor import SERVER
from storage.jobs import jobs
from storage.models import Account, Activity

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "/ui/a/acme/settings/"


def save(client, **fields):
    return client.post(SETTINGS, {"form": "lifetime", **fields})


def over(account):
    Account.objects.filter(pk=account.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    expiry.expire(timezone.now())
    account.refresh_from_db()


def page(client, address):
    return client.get(address).content.decode()


def test_is_made_for_a_while_counts_down_freezes_and_goes(visit):
    client, before = visit("ada"), timezone.now()
    made = client.post("/ui/a/new/", {"name": "branch", "lives": "8h", "labels": "branch=main\nkind = ci"})
    assert made.status_code == 302
    account = Account.objects.get(name="branch")
    assert account.labels == {"branch": "main", "kind": "ci"}
    assert before <= account.expires_at - timedelta(hours=8) <= timezone.now()
    for address in ("/ui/", "/ui/a/branch/", "/ui/a/branch/settings/"):
        assert "expires in 7\N{NO-BREAK SPACE}hours" in page(client, address), address
    assert "branch=main" in page(client, "/ui/")

    over(account)
    for address in ("/ui/", "/ui/a/branch/", "/ui/a/branch/settings/"):
        assert "expired, will be deleted in 23\N{NO-BREAK SPACE}hours" in page(client, address), address
    expiry.expire(account.frozen_at + timedelta(hours=24))
    assert client.get("/ui/a/branch/").status_code == 404


def test_an_owner_sets_its_end_and_takes_it_back(visit, account):
    alice = visit("alice")
    assert save(alice, lives="7d").status_code == 302
    account.refresh_from_db()
    assert account.expires_at - timezone.now() > timedelta(days=6)
    done = Activity.objects.latest("pk")
    assert done.before == {"expires_at": None}
    assert datetime.fromisoformat(done.after["expires_at"]) == account.expires_at
    assert "Expires" in page(alice, f"/ui/a/acme/activity/{done.pk}/")

    alice.post(f"/ui/undo/{done.pk}/", {"next": SETTINGS})
    account.refresh_from_db()
    assert account.expires_at is None


def test_an_account_that_is_being_made_is_not_enabled(visit, account):
    account_settings.change(accounts.by_name("acme"), enabled=False)
    jobs.start_requested(removal.request(account, with_tables=True), by=SERVER)
    refused = visit("alice").post(SETTINGS, {"form": "access", "enabled": "on", "shared_key_access": "on"})
    assert refused.status_code == 422
    assert "being created or deleted" in refused.content.decode()


def test_more_time_brings_it_back(visit, account):
    over(account)
    alice = visit("alice")
    refused = alice.post(SETTINGS, {"form": "access", "enabled": "on", "shared_key_access": "on"})
    assert refused.status_code == 422
    assert "The account acme has expired" in refused.content.decode()
    save(alice, lives="1d")
    account.refresh_from_db()
    assert (account.enabled, account.frozen_at) == (True, None)


def test_an_end_is_a_time_of_the_users_zone(visit, cast, account):
    cast["alice"].time_zone = "Asia/Shanghai"
    cast["alice"].save()
    end = (datetime.now(UTC) + timedelta(days=2)).replace(second=0, microsecond=0)
    save(visit("alice"), lives="until", until=(end + timedelta(hours=8)).strftime("%Y-%m-%dT%H:%M"))
    account.refresh_from_db()
    assert account.expires_at == end


def test_refuses_an_end_that_is_none(visit, account):
    client = visit("alice")
    for until in ["", "2020-01-01T00:00", "2099-01-01T00:00"]:
        assert save(client, lives="until", until=until).status_code == 422, until
        account.refresh_from_db()
        assert account.expires_at is None, until


def test_refuses_invalid_labels(visit, account):
    client = visit("alice")
    for labels in ["=x", "a=1\na=2", "-a=1", "\n".join(f"l{number}=" for number in range(33))]:
        answer = client.post(SETTINGS, {"form": "description", "labels": labels})
        assert answer.status_code == 422, labels
        assert "Write each label as key=value" in answer.content.decode(), labels
