"""Saved queries, those that ran last, and addresses that are too long."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from console import recent_queries, saved_queries, short_addresses
from console.models import RecentQuery, SavedQuery, StoredState
from storage.models import Activity, Table
from storage.operations import accounts, tables

PEOPLE = "/ui/a/acme/t/people/"
NEW = PEOPLE + "queries/new/"
ADA = "Name eq 'Ada'"
HOSTILE = ('<img src=x onerror="alert(1)">', "‮مرحبا <b>بالعالم</b>", "&quot;" * 10 + "a" * 4, "x" * 64)


@pytest.fixture
def filled(people):
    people("se", "1", Name="Ada", Age=36)
    people("se", "2", Name="Grace", Age=37)
    people("tr", "1", Name="O'Hara", Age=38)


def save(client, name="Adas", *, state="f=Name+eq+'Ada'", **fields):
    """The answer of the form as a browser sends it."""
    sent = parse_qs(state)
    values = {"name": name, "filter": sent.get("f", [""])[0], "keeps_view": "on", "state": state, **fields}
    return client.post(NEW, values)


def query(**fields):
    return SavedQuery.objects.get(deleted_at=None, **fields)


def names(answer):
    return [row.key.row_key for row in answer.context["grid"].rows]


def messages(answer):
    return [str(message) for message in answer.context["messages"]]


# Q6


def test_q6_a_query_is_saved_and_its_address_applies_it(visit, filled):
    client = visit("victor")
    answer = save(client, state="f=Name+eq+'Ada'&cols=PartitionKey,RowKey,Name&top=25&view=json")
    assert answer.status_code == 303
    assert answer["Location"].startswith(PEOPLE + "?f=Name+eq+%27Ada%27&top=25&cols=")
    assert parse_qs(urlsplit(answer["Location"]).query)["q"] == ["adas"]
    applied = client.get(PEOPLE + "q/adas/")
    assert applied["Location"] == answer["Location"]
    shown = client.get(applied["Location"])
    assert shown.context["applied"].query.name == "Adas"
    assert shown.context["applied"].changed == []
    assert len(shown.context["documents"]) == 1


def test_q6_says_what_changed_and_updates(visit, filled):
    client = visit("eve")
    save(client, is_shared="on")
    shown = client.get(PEOPLE, {"f": "Name eq 'Grace'", "top": "25", "q": "adas"})
    assert [str(name) for name in shown.context["applied"].changed] == ["Filter", "Per page"]
    form = {"state": shown.context["state"].query(), "version": "1"}
    assert client.post(PEOPLE + "q/adas/update/", form)["Location"].endswith("&q=adas")
    assert query().content == {"f": "Name eq 'Grace'", "top": "25"}
    answer = client.post(PEOPLE + "q/adas/update/", form | {"state": "f=Age+eq+1"}, follow=True)
    assert messages(answer)[-1] == "Not saved: somebody saved another version meanwhile."
    assert query().content["f"] == "Name eq 'Grace'"
