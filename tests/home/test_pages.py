"""The home page: accounts with their contents, recent tables, and the start of an empty server."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from console.grid import bookmarks
from console.home.views import home as home_views
from console.models import Bookmark
from console.site import layout
from storage.accounts import account_settings, accounts, removal, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.activity import activity
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic, write_counts
from storage.metrics.last_day import hour_of
from storage.metrics.series import WHOLE
from storage.models import Membership, RequestSeries
from storage.sql import batch
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.tables.subject import TableVerb


def home(client):
    return client.get("/ui/")


def test_redirects_to_the_console(client):
    for path in ("/", "/ui"):
        assert client.get(path)["Location"] == "/ui/"


def test_shows_the_accounts_of_a_user(visit, cast, add_entity):
    other = accounts.add("other", NewAccount(label="Shop", colour="#d1383f"))
    account_settings.change(accounts.by_name("other"), enabled=False)
    Membership.objects.create(user=cast["victor"], account=other, role=Role.OWNER)
    answer = home(visit("victor"))
    assert [(card.account.name, card.role, card.contents.tables) for card in answer.context["cards"]] == [
        ("acme", Role.VIEWER, 1),
        ("other", Role.OWNER, 0),
    ]
    page = answer.content.decode()
    assert "disabled" in page
    assert "Shop" in page
    assert 'fill="#d1383f"' in page
    assert [card.role for card in home(visit("ada")).context["cards"]] == [Role.OWNER, Role.OWNER]


def test_says_how_much_was_asked(visit, account):
    now = timezone.now()
    count(account, now - timedelta(minutes=1), 3)
    count(account, hour_of(now) - timedelta(hours=5), 4, minutes=15)
    count(account, hour_of(now) - timedelta(hours=26), 100, minutes=15)
    victor = visit("victor")
    [card] = home(victor).context["cards"]
    assert card.requests == 7
    assert len(card.traffic.hours) == 24
    assert card.traffic.last == (now - timedelta(minutes=1)).replace(second=0, microsecond=0)
    assert "7 requests in the last 24 hours" in home(victor).content.decode()


def test_knows_a_request_of_the_last_month(visit, account):
    victor = visit("victor")
    [card] = home(victor).context["cards"]
    assert card.traffic.last is None
    for days in (20, 40):
        moment = hour_of(timezone.now()) - timedelta(days=days)
        count(account, moment, 1, minutes=120)
    [card] = home(victor).context["cards"]
    assert (card.requests, card.traffic.last) == (0, hour_of(timezone.now()) - timedelta(days=20))


def count(account, moment, requests, minutes=1):
    counts = PeriodCounts()
    counts.traffic(SeriesKind("QueryEntities", 200)).add(Traffic(requests))
    RequestSeries.objects.create(
        account=account, table_id=WHOLE, minutes=minutes, process="one" if minutes == 1 else "",
        period=moment.replace(second=0, microsecond=0), counts=write_counts(counts),
    )  # fmt: skip


def test_asks_the_database_as_often_for_many_accounts(visit, account):
    client = visit("ada")
    home(client)
    with CaptureQueriesContext(connection) as of_one:
        home(client)
    for number in range(20):
        accounts.add(f"more{number:02}")
    with CaptureQueriesContext(connection) as of_many:
        assert len(home(client).context["cards"]) == 21
    assert len(of_many) == len(of_one)


def test_shows_no_key_that_is_a_secret(visit, account):
    tables.create(account, "people")
    page = home(visit("alice")).content.decode()
    assert "http://testserver/acme" in page
    for key in sealed_keys.keys_of(account):
        assert sealed_keys.encode_key(key) not in page


def test_shows_where_to_begin(visit, account):
    ada = visit("ada")
    page = home(ada).content.decode()
    assert page.count('<li class="card"') == 3
    assert 'action="/ui/a/acme/tables/sample/"' in page
    page = home(visit("victor")).content.decode()
    for action in ("/tables/sample/", "/keys/", "/ui/a/new/"):
        assert action not in page  # viewers may not do it
    assert b"You don't have access to any account yet" in home(visit("sam")).content
    tables.create(account, "people")
    assert "/tables/sample/" not in home(ada).content.decode()
    removal.remove("acme", with_tables=True)
    page = home(ada).content.decode()
    assert page.count('<li class="card"') == 3
    assert 'href="/ui/a/new/"' in page


@pytest.fixture
def table(account):
    return tables.create(account, "People")


def test_never_says_that_there_are_no_entities_before_that_is_certain(visit, table):
    victor = visit("victor")
    assert "no entities" in home(victor).content.decode()
    # the statistics do not include the row yet
    run(batch.apply(relation_name(table.pk), [Insert(Entity(EntityKey("p", "r"), {}))]))
    for page in ("/ui/", "/ui/a/acme/overview/"):
        assert "no entities" not in victor.get(page).content.decode()
    assert "about 0" not in visit("ada").get("/ui/a/acme/delete/").content.decode()


def test_repeated_activities_of_a_caller_are_one_line(now, visit, account):
    for number in range(12):
        activity.record(
            TableVerb.CREATE,
            Actor(ActorKind.KEY, "key1", request_id=str(number), agent=f"sdk {number}"),
            account=account,
            detail={"table": f"t{number}"},
        )
    activity.record(TableVerb.DELETE, Actor(ActorKind.KEY, "key1"), account=account)
    answer = home(visit("victor"))
    newest, load, *_rest = answer.context["activities"]
    assert (newest.done.verb, newest.others) == (TableVerb.DELETE, 0)
    assert (load.done.request_id, load.others, load.is_open) == ("11", 11, False)
    assert '<a href="/ui/a/acme/activity/">' in answer.content.decode()
    assert "and 11 more" in answer.content.decode()


def test_remembers_what_was_opened(visit, cast, account, table):
    bookmarks.record_visit(bookmarks.find(cast["victor"], table))
    client = visit("victor")
    assert [shown_table.name for shown_table in home(client).context["recent"]] == ["People"]
    assert b"/ui/a/acme/t/People/" in home(client).content
    assert home(visit("eve")).context["recent"] == []


def test_opening_again_soon_writes_nothing(cast, table, django_assert_num_queries):
    bookmarks.record_visit(bookmarks.find(cast["victor"], table))
    with django_assert_num_queries(1):
        bookmarks.record_visit(bookmarks.find(cast["victor"], table))


def test_stars(visit, cast, table):
    client = visit("victor")
    answer = client.post("/ui/a/acme/t/people/star/", {"starred": "1"})
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/t/People/")
    assert [shown_table.name for shown_table in home(client).context["starred"]] == ["People"]
    assert bookmarks.find(cast["victor"], table).is_starred
    part = client.post("/ui/a/acme/t/People/star/", {"starred": "0"}, headers={"HX-Request": "true"})
    assert b'aria-pressed="false"' in part.content
    assert b"<html" not in part.content
    assert home(client).context["starred"] == []


def test_forgets_tables_that_are_gone_or_none_of_ones_business(visit, cast, account, table):
    bookmarks.star(cast["victor"], table, on=True)
    Membership.objects.filter(user=cast["victor"]).delete()
    assert home(visit("victor")).context["starred"] == []
    bookmarks.star(cast["alice"], table, on=True)
    tables.delete(account, "people")
    assert home(visit("alice")).context["starred"] == []
    tables.drop_expired_tables()
    assert not Bookmark.objects.filter(table_id=table.pk).exists()


def test_many_accounts_are_shown_page_by_page_and_found_by_name_or_label(visit, account, monkeypatch):
    monkeypatch.setattr(home_views, "ACCOUNTS", 2)
    monkeypatch.setattr(layout, "SWITCHER_LIMIT", 2)
    for name, label in (("beta", "Shop"), ("gamma", "Shop floor"), ("zeta", "")):
        accounts.add(name, NewAccount(label=label))
    client = visit("ada")

    def shown(address="/ui/", **query):
        return [card.account.name for card in client.get(address, query).context["cards"]]

    assert shown() == ["acme", "beta"]
    assert shown(client.get("/ui/").context["page"].next) == ["gamma", "zeta"]
    assert "1–2 of 4" in client.get("/ui/").content.decode()
    assert shown(q="SHOP") == ["beta", "gamma"]
    assert shown(q="eta", page=2) == shown(q="eta") == ["beta", "zeta"]
    assert "No account matches “x&lt;y”." in client.get("/ui/", {"q": "x<y"}).content.decode()
    switcher = client.get("/ui/a/zeta/").content.decode()
    assert ('action="/ui/"' in switcher, 'href="/ui/a/gamma/"' in switcher) == (True, False)
