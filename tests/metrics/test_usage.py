"""Uses of keys and tokens: times, addresses and clients."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.accounts import accounts
from storage.domain.requests.metrics import CredentialClient, UseCount
from storage.domain.requests.observed import Authentication
from storage.metrics import usage
from storage.metrics.series import HOUR
from storage.metrics.usage import ClientUsage, Uses
from storage.models import CredentialUse

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOW = NOON + timedelta(minutes=30)
DAY = timedelta(days=1)
KEY, SAS = Authentication.KEY, Authentication.SAS
PARAMETERS = (("sv", "2019-02-02"), ("sp", "r"))


@pytest.fixture
def account(db):
    return accounts.add("counted").pk


def client(account, credential="key1", address="192.0.2.1", agent="agent"):
    kind = KEY if credential.startswith("key") else SAS
    return CredentialClient(account, kind, credential, address, agent)


def wrote(process, used, count=1, last=NOON, parameters=()):
    """Record a use and write it, as one process does."""
    uses = Uses(process)
    uses.add(last.replace(minute=0, second=0), used, UseCount(count, last), parameters)
    uses.write()
    return uses


def test_unused_credentials_have_no_usage(account):
    other = accounts.add("others").pk
    wrote("one", client(other))

    assert usage.credentials(account, NOW) == []
    assert usage.credential(account, KEY, "key1", NOW) is None
    assert usage.clients(account, KEY, "key1", NOON - DAY) == []
    assert len(usage.credentials(other, NOW)) == 1


def test_tells_when_a_key_was_used_last_from_where_and_how_often(account):
    wrote("one", client(account, "key1", "192.0.2.1", "old"), 3, NOON)
    wrote("two", client(account, "key1", "192.0.2.2", "new"), 4, NOON + timedelta(minutes=1))

    (used,) = usage.credentials(account, NOW)

    assert used == usage.credential(account, KEY, "key1", NOW)
    assert (used.name, used.uses, used.address, used.agent) == ("key1", 7, "192.0.2.2", "new")
    assert (used.first, used.last) == (NOON, NOON + timedelta(minutes=1))
    assert usage.credential(account, KEY, "key2", NOW) is None


def test_tells_the_parameters_of_a_token_that_was_not_made_here(account):
    wrote("one", client(account, "ab" * 32), parameters=PARAMETERS)
    wrote("two", client(account))

    (used,) = usage.credentials(account, NOW, SAS)

    assert (used.authentication, used.name, used.parameters) == (SAS, "ab" * 32, PARAMETERS)
    assert used.uses == 1


def test_counts_the_last_24_hours(account):
    for hours in (0, 1, 23, 24, 25, 100):
        wrote("one", client(account), last=NOON - hours * HOUR)

    assert usage.credential(account, KEY, "key1", NOW).uses == usage.credentials(account, NOW)[0].uses == 3


def test_lists_the_clients_of_a_key(account):
    wrote("one", client(account), 3, NOON)
    wrote("two", client(account), 3, NOON + HOUR)
    wrote("two", client(account, "key1", "192.0.2.1", "other"), 1, NOON + 2 * HOUR)
    wrote("one", client(account, "key2", "192.0.2.9", "agent"), 1)
    wrote("one", client(account, "key1", "192.0.2.8", "long ago"), 1, NOON - 8 * DAY)

    assert usage.clients(account, KEY, "key1", NOON - 7 * DAY) == [
        ClientUsage("192.0.2.1", "other", 1, NOON + 2 * HOUR),
        ClientUsage("192.0.2.1", "agent", 6, NOON + HOUR),
    ]


def test_writing_again_does_no_harm(account):
    uses = wrote("one", client(account), 3)
    uses.add(NOON, client(account), UseCount(0, NOON), ())
    uses.write()
    uses.add(NOON, client(account), UseCount(2, NOON), ())
    uses.write()

    assert usage.credential(account, KEY, "key1", NOW).uses == 5


def test_an_hour_that_is_over_is_forgotten_once_it_is_written(account):
    uses = wrote("one", client(account), 3)
    uses.forget(NOON + 2 * HOUR)
    uses.add(NOON + 2 * HOUR, client(account), UseCount(1, NOON + 2 * HOUR), ())
    uses.forget(NOON + 3 * HOUR + timedelta(minutes=20))
    uses.write()

    assert usage.credential(account, KEY, "key1", NOON + 3 * HOUR).uses == 4


def test_does_not_tell_more_clients_apart_than_it_can_keep(account, monkeypatch):
    monkeypatch.setattr(usage, "_CROWD", 3)
    uses = Uses("one")
    for number in range(10):
        uses.add(NOON, client(account, address=f"192.0.2.{number}"), UseCount(1, NOON), ())
    for number in range(10):
        uses.add(NOON, client(account, f"{number:064}"), UseCount(1, NOON), PARAMETERS)
    uses.write()

    assert usage.credential(account, KEY, "key1", NOW).uses == 10
    assert len(usage.clients(account, KEY, "key1", NOON)) == 4
    # one place went to the key
    assert [used.uses for used in usage.credentials(account, NOW, SAS)] == [1, 1]
    assert CredentialUse.objects.get(authentication=SAS, name="").count == 8


def test_no_crowd_of_clients_hides_a_token(account, monkeypatch):
    monkeypatch.setattr(usage, "_CROWD", 3)
    uses = Uses("one")
    for number in range(10):
        uses.add(NOON, client(account, "ab", agent=f"agent {number}"), UseCount(1, NOON), PARAMETERS)
    uses.add(NOON, client(account, "cd", "192.0.2.6", "thief"), UseCount(1, NOON), PARAMETERS)
    uses.write()

    assert usage.credential(account, SAS, "cd", NOW).uses == 1
    assert usage.credential(account, SAS, "ab", NOW).uses == 10


def test_drops_uses_after_eight_days_and_credentials_after_ninety(account):
    wrote("one", client(account))

    usage.tidy(NOON + 7 * DAY)
    assert len(usage.clients(account, KEY, "key1", NOON)) == 1
    usage.tidy(NOON + 9 * DAY)
    assert usage.clients(account, KEY, "key1", NOON) == []
    assert usage.credential(account, KEY, "key1", NOON + 9 * DAY).uses == 0
    usage.tidy(NOON + 91 * DAY)
    assert usage.credentials(account, NOON) == []


def test_keeps_the_credentials_used_last_when_they_are_too_many(account, monkeypatch):
    monkeypatch.setattr(usage, "_CREDENTIALS_LIMIT", 3)
    other = accounts.add("others").pk
    for number in range(5):
        last = NOON + timedelta(seconds=number)
        wrote("one", client(account, f"{number}"), last=last)
    wrote("one", client(other))

    usage.tidy(NOW)

    assert [used.name for used in usage.credentials(account, NOW)] == ["4", "3", "2"]
    assert [used.name for used in usage.credentials(account, NOW, limit=1)] == ["4"]
    assert len(usage.credentials(other, NOW)) == 1
