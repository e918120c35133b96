"""The accounts, and the tables of one."""

import pytest

from console.models import Membership, Role
from storage.operations import accounts, tables
from storage.sql.django import execute


def names(answer):
    return [table.name for table in answer.context["listing"].tables]


def test_redirects_to_the_console(client):
    for path in ("/", "/ui"):
        assert client.get(path)["Location"] == "/ui/"


def test_home_shows_the_accounts_of_a_user(visit, cast, people):
    other = accounts.add("other")
    accounts.set_enabled("other", enabled=False)
    Membership.objects.create(user=cast["victor"], account=other, role=Role.OWNER)
    cards = visit("victor").get("/ui/").context["cards"]
    assert [(card.account.name, card.role, card.tables) for card in cards] == [
        ("acme", Role.VIEWER, 1),
        ("other", Role.OWNER, 0),
    ]
    assert b"disabled" in visit("victor").get("/ui/").content
    assert [card.role for card in visit("ada").get("/ui/").context["cards"]] == [Role.OWNER, Role.OWNER]


def test_home_shows_no_key_that_is_a_secret(visit, account):
    page = visit("alice").get("/ui/").content.decode()
    assert "TableEndpoint=http://testserver/acme;" in page
    assert "AccountKey=(see: account list --keys);" in page
    for key in accounts.keys_of(account):
        assert accounts.write_key(key) not in page


def test_home_without_an_account(visit):
    assert b"You are in no account yet" in visit("sam").get("/ui/").content


def test_home_of_an_empty_server(visit, account):
    accounts.remove("acme")
    assert b"account add NAME" in visit("ada").get("/ui/").content


def test_lists_the_tables(visit, account):
    for name in ("Carts", "people", "audit"):
        tables.create(account.pk, name)
    answer = visit("victor").get("/ui/a/acme/")
    assert names(answer) == ["audit", "Carts", "people"]
    assert answer.context["listing"].total == 3


def test_an_account_without_tables_says_how_to_make_one(visit):
    page = visit("alice").get("/ui/a/acme/").content.decode()
    assert "create_table" in page
    assert 'type="search"' not in page


def test_filters_in_the_address(visit, account):
    for name in ("Carts", "people", "audit"):
        tables.create(account.pk, name)
    answer = visit("alice").get("/ui/a/acme/", {"q": " CA "})
    assert names(answer) == ["Carts"]
    assert b'value="CA"' in answer.content
    answer = visit("alice").get("/ui/a/acme/", {"q": '<i>"%_'})
    assert names(answer) == []
    assert b"&lt;i&gt;&quot;%_" in answer.content
    assert b"<i>" not in answer.content


def test_pages(visit, account):
    for number in range(205):
        tables.create(account.pk, f"t{number:03}")
    client = visit("alice")
    first = client.get("/ui/a/acme/", {"q": "t"})
    assert names(first) == [f"t{number:03}" for number in range(100)]
    second = client.get(first.context["next"])
    assert names(second) == [f"t{number:03}" for number in range(100, 200)]
    assert names(client.get(client.get(second.context["next"]).context["first"])) == names(first)
    assert second.context["listing"].total == 205


@pytest.mark.django_db(transaction=True)
def test_sizes_are_about_right(visit, account, people):
    for number in range(120):
        people("se", f"{number:03}", Name="x" * 1000)
    execute("ANALYZE")
    (table,) = visit("alice").get("/ui/a/acme/").context["listing"].tables
    assert table.entities >= 120  # statistics may count what was written around an ANALYZE twice
    assert table.size > 120_000
