"""Search and the palette: everything that the user may see, and nothing else."""

import pytest
from django.urls import reverse

from console.grid import bookmarks
from storage.access import policies, sas
from storage.access.sas import SasDescription
from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.access.actor import COMMAND
from storage.domain.access.policies import SignedIdentifier
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.sas import TableSas
from storage.models import Membership
from storage.sql.django import run
from storage.sql.entities import change
from storage.sql.relations import relation_name
from storage.tables import tables

SEARCH = "/ui/search/"


def found(client, text, **parameters):
    """Title of the group → texts."""
    groups = client.get("/ui/palette/", {"q": text, **parameters}).context["groups"]
    return {str(title): [str(hit.text) for hit in hits] for title, hits in groups}


def insert(account, table, partition_key, row_key):
    relation = relation_name(tables.get(account, table).pk)
    run(change(relation, Insert(Entity(EntityKey(partition_key, row_key), {}))))


@pytest.fixture
def named(account):
    for name in ("People", "peopleOld", "oldPeople", "carts"):
        tables.create(account, name)
    return account


def test_results_exclude_forbidden_objects(visit, cast, named):
    other = accounts.add("other", NewAccount(label="People of another"))
    tables.create(other, "people2")
    assert found(visit("sam"), "people").keys() == {"Help"}
    victor = visit("victor")
    assert found(victor, "people")["Tables"] == ["People", "peopleOld", "oldPeople"]
    assert "Accounts" not in found(victor, "people")
    Membership.objects.create(user=cast["victor"], account=other, role=Role.VIEWER)
    assert "people2" in found(victor, "people")["Tables"]
    assert found(victor, "of another")["Accounts"] == ["other"]


def test_finds_tables_the_exact_one_first_and_entities_by_their_keys(visit, named):
    insert(named, "people", "p", "ada lovelace")
    insert(named, "people", "", "o'brien")
    tables.delete(named, "carts")
    victor = visit("victor")
    for text, title, expected in (
        ("PEOPLE", "Tables", ["People", "peopleOld", "oldPeople"]),
        ("carts", "Tables", None),
        ("people p ada lovelace", "Entities", ["p, ada lovelace"]),
        ("PEOPLE 'p' 'ada lovelace'", "Entities", ["p, ada lovelace"]),
        ("People  p  'ada lovelace'", "Entities", ["p, ada lovelace"]),
        ("people p bob lovelace", "Entities", None),
        ("people '' 'o''brien'", "Entities", [", o'brien"]),
        ("people '' o'brien", "Entities", [", o'brien"]),
    ):
        assert found(victor, text).get(title) == expected, text
    assert "Entities" not in found(visit("sam"), "people p ada lovelace")


def test_finds_policies_and_the_labels_of_tokens_for_those_who_may_see_them(visit, named):
    policies.replace_by_name(named, "carts", [SignedIdentifier("Reporting")])
    token = TableSas(version="2019-02-02", table="carts", permissions="r", expiry="2030-01-01")
    sas.issue(named, token, 1, SasDescription("Weekly reporting"), by=COMMAND)
    max_ = visit("max")
    assert found(max_, "report") == {
        "Stored access policies": ["Reporting"],
        "SAS tokens": ["Weekly reporting"],
    }
    victor = visit("victor")
    assert found(victor, "report") == {"Stored access policies": ["Reporting"]}
    assert found(visit("sam"), "report") == {}
    policies.replace_by_name(named, "carts", [SignedIdentifier("Résumé")])
    for text in ("resume", "RÉSUMÉ"):  # without its marks
        assert found(victor, text) == {"Stored access policies": ["Résumé"]}, text
    tables.delete(named, "carts")
    assert "Stored access policies" not in found(max_, "resume")


def test_results_include_permitted_pages_and_users_for_admins(visit):
    clients = {name: visit(name) for name in ("ada", "alice", "eve", "sam")}
    for name, text, title, expected in (
        ("alice", "keys", "Pages", ["Keys"]),
        ("eve", "keys", "Pages", None),
        ("sam", "keys", "Pages", None),
        ("ada", "new account", "Pages", ["New account"]),
        ("ada", "ALI", "Users", ["alice"]),
        ("alice", "ali", "Users", None),
    ):
        place = {"in": "acme"} if text == "keys" else {}
        assert found(clients[name], text, **place).get(title) == expected, (name, text)


def test_finds_pages_of_other_tables_and_accounts_by_both_names(visit, named):
    tables.create(accounts.add("other", NewAccount(label="Café")), "people")
    client = visit("ada")

    def addresses(text, **parameters):
        groups = client.get("/ui/palette/", {"q": text, **parameters}).context["groups"]
        return [hit.address for _title, hits in groups for hit in hits]

    assert set(addresses("schema people")) == {
        f"/ui/a/{name}/schema/"
        for name in ("other/t/people", "acme/t/People", "acme/t/peopleOld", "acme/t/oldPeople")
    }
    assert addresses("rotate key2 cafe") == ["/ui/a/other/keys/2/rotate/"]
    assert (
        addresses("schema people", **{"in": "acme", "table": "carts"}).count("/ui/a/acme/t/People/schema/")
        == 1
    )
    assert not found(visit("sam"), "schema people")
    # misspelled names, and names without some letters
    assert addresses("setings", **{"in": "acme"})[0] == "/ui/a/acme/settings/"
    assert "carts" in found(client, "crts")["Tables"]
    # documents, and their sections
    assert found(client, "glossary")["Help"] == ["Glossary"]
    assert addresses("scheduled backups operations") == ["/ui/help/operations/#scheduled-backups"]


def test_finds_settings_and_where_they_are(visit, account):
    def settings(name, text):
        groups = visit(name).get("/ui/palette/", {"q": text, "in": "acme"}).context["groups"]
        return {
            str(hit.text): hit.address for title, hits in groups if str(title) == "Settings" for hit in hits
        }

    assert settings("victor", "zone") == {"Time zone": "/ui/me/#id_time_zone"}
    assert settings("victor", "cors") == {"CORS rules": "/ui/a/acme/service/#cors-title"}
    assert settings("alice", "protection") == {"Protection": "/ui/a/acme/settings/#guard"}
    assert settings("victor", "protection") == {}
    page = visit("alice").get("/ui/palette/", {"q": "protection", "in": "acme"}).content.decode()
    assert "Settings</span>" in page  # its page, beside it


def test_turkish_letters_in_any_case(visit, account):
    client = visit("alice")
    client.cookies["tablero_language"] = "tr"
    for text in ["İlkeler", "ilkeler", "ILKELER", "ıLKELER"]:
        groups = found(client, text, **{"in": "acme"})
        assert any("İlkeler" in hit for hits in groups.values() for hit in hits), groups


def test_recent_tables_come_before_other_matches_except_the_exact_name(visit, cast, named):
    bookmarks.record_visit(bookmarks.find(cast["victor"], tables.get(named, "oldPeople")))
    victor = visit("victor")
    assert found(victor, "people")["Tables"] == ["People", "oldPeople", "peopleOld"]
    assert found(victor, "peop")["Tables"] == ["oldPeople", "People", "peopleOld"]
    groups = found(victor, "", **{"in": "acme"})
    assert list(groups) == ["Recent tables", "Pages"]
    assert groups["Recent tables"] == ["oldPeople"]


def test_leads_to_the_other_accounts(visit, account):
    accounts.add("other")
    ada = visit("ada")
    assert found(ada, "", **{"in": "acme"})["Accounts"] == ["other"]
    assert sorted(found(ada, "")["Accounts"]) == ["acme", "other"]


def test_the_name_of_one_table_opens_it_and_in_two_accounts_is_a_question(visit, named):
    answer = visit("victor").get(SEARCH, {"q": " people "})
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/t/People/")
    tables.create(accounts.add("other"), "people")
    answer = visit("ada").get(SEARCH, {"q": "people"})
    assert answer.status_code == 200
    assert answer.content.count(b"/t/people/") + answer.content.count(b"/t/People/") == 2


def test_takes_any_text(visit, named):
    client = visit("ada")
    for text in ["%", "_", "İ", "x" * 1000, "\0", "\ud800"]:
        query = text.encode("utf-8", "surrogatepass")
        assert client.get(reverse("home:palette"), {"q": query, "in": query}).status_code == 200, text
    assert "No results for “&lt;b&gt;&quot;”" in client.get(SEARCH, {"q": '<b>"\0'}).content.decode()


def test_the_palette_leads_to_the_rest(visit, account):
    for number in range(9):
        tables.create(account, f"table{number}")
    ada = visit("ada")
    groups = found(ada, "table")
    assert len(groups["Tables"]) == 8
    assert list(groups)[-1] == "More"
    page = ada.get(SEARCH, {"q": "table"}).content
    assert all(f"/t/table{number}/".encode() in page for number in range(9))


def test_the_page_with_the_name_comes_first(visit, named):
    for name in ("settings10", "cafe"):
        tables.create(named, name)
    alice, ada = visit("alice"), visit("ada")
    assert next(iter(found(alice, "settings", **{"in": "acme"}))) == "Pages"
    assert found(alice, "settings", **{"in": "acme"})["Pages"][0] == "Account settings"
    tables.create(named, "settings")
    assert next(iter(found(alice, "settings", **{"in": "acme"}))) == "Tables"
    assert found(alice, "café")["Tables"] == ["cafe"]
    assert found(ada, "invite")["Settings"] == ["Invite by link"]
    for place in ({}, {"in": "acme"}):
        assert found(alice, "delete table", **place)["Settings"] == ["Delete tables"], place
        assert not found(visit("victor"), "delete table", **place), place
