"""The tables of an account: the list, making and deleting them, and what people note about them."""

import re

import pytest

from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.models import Activity, Table
from storage.operations import policies, table_list, tables
from storage.sql import background
from storage.sql.django import execute

LIST = "/ui/a/acme/"
NEW = "/ui/a/acme/tables/new/"
DELETE = "/ui/a/acme/tables/delete/"
TAGS = "/ui/a/acme/tables/tags/"
RESTORE = "/ui/a/acme/tables/restore/"
SETTINGS = "/ui/a/acme/t/people/settings/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def add(account):
    def add(*names, tags=(), description=""):
        for name in names:
            tables.change(tables.create(account.pk, name), tags=list(tags), description=description)

    return add


def names(answer):
    return [table.name for table in answer.context["listing"].tables]


def text(answer):
    return answer.content.decode()


def said(client):
    return " ".join(str(message) for message in client.get(LIST).context["messages"])


def existing(account):
    return {table.name for table in Table.objects.own().filter(account=account)}


# the list


def test_lists_the_tables(visit, add):
    add("Carts", "people", "audit")
    answer = visit("victor").get(LIST)
    assert names(answer) == ["audit", "Carts", "people"]
    assert answer.context["listing"].total == 3


def test_the_list_opens_no_table(visit, add, monkeypatch, django_assert_max_num_queries):
    add(*(f"t{number:02}" for number in range(30)))
    client = visit("alice")
    for name in ("sizes_of", "partitions_up_to", "partitions_of"):
        monkeypatch.setattr(background, name, lambda *_: pytest.fail("a table was measured"))
    with django_assert_max_num_queries(25):
        page = text(client.get(LIST, {"q": "t"}))
    assert 'hx-get="/ui/a/acme/tables/sizes/?q=t"' in page


def test_sizes_come_later(visit, people, add):
    add("empty")
    for number in range(3):
        people("se", f"{number:03}")
    answer = visit("victor").get("/ui/a/acme/tables/sizes/")
    assert re.search(r'id="entities-people" hx-swap-oob="true">\s*3\s*<', text(answer))
    assert re.search(r'id="partitions-people" hx-swap-oob="true">\s*1\s*<', text(answer))
    assert re.search(r'id="entities-empty" hx-swap-oob="true">\s*0\s*<', text(answer))
    page = text(visit("victor").get(LIST, {"sizes": ""}))
    assert re.search(r'id="entities-people">\s*3\s*<', page)
    assert "hx-swap-oob" not in page


@pytest.mark.django_db(transaction=True)
def test_sizes_of_large_tables_are_estimates(account, people, monkeypatch):
    monkeypatch.setattr(table_list, "_COUNTED", 50)
    for number in range(120):
        people(f"p{number % 4}", f"{number:03}", Name="x" * 1000)
    execute("ANALYZE")
    size = table_list.sizes(list(Table.objects.own()))["people"]
    assert not size.is_exact
    assert size.entities >= 120  # statistics may count what was written around an ANALYZE twice
    assert size.partitions == 4
    assert size.bytes > 120_000
    parts = table_list.disk_usage(Table.objects.get(name="people"))
    assert min(parts.entities, parts.key_index, parts.property_index) > 0


def test_counts_exactly_on_demand(visit, people, monkeypatch):
    monkeypatch.setattr(table_list, "_COUNTED", 2)
    for number in range(3):
        people("se", f"{number:03}")
    client = visit("victor")
    assert "about" in text(client.get("/ui/a/acme/tables/sizes/"))
    assert "tables/sizes/?exactly=people" in text(client.get("/ui/a/acme/tables/sizes/"))
    assert text(client.get("/ui/a/acme/tables/sizes/", {"exactly": "people"})).strip() == "3"
    assert client.get("/ui/a/acme/tables/sizes/", {"exactly": "nothing"}).status_code == 404


def test_filters_in_the_address(visit, add):
    add("Carts", "people", "audit")
    answer = visit("alice").get(LIST, {"q": " CA "})
    assert names(answer) == ["Carts"]
    assert 'value="CA"' in text(answer)
    answer = visit("alice").get(LIST, {"q": '<i>"%_'})
    assert names(answer) == []
    assert "&lt;i&gt;&quot;%_" in text(answer)
    assert "<i>" not in text(answer)
    assert names(visit("alice").get(LIST, {"q": "a\0"})) == ["audit", "Carts"]


def test_a_part_of_the_page_has_a_clean_address(visit, add):
    add("Carts", "people")
    answer = visit("alice").get(LIST, {"q": "ca", "tag": ""}, headers=HTMX)
    assert text(answer).lstrip().startswith('<div id="listing"')
    assert answer["HX-Replace-Url"] == "/ui/a/acme/?q=ca"


def test_filters_by_tag(visit, add):
    add("Carts", tags=["prod", "a & b"])
    add("people", tags=["test"], description="<b>who</b>")
    client = visit("victor")
    assert names(client.get(LIST, {"tag": "prod"})) == ["Carts"]
    assert names(client.get(LIST, {"tag": "prod", "q": "people"})) == []
    assert names(client.get(LIST, {"q": "test"})) == ["people"]
    page = text(client.get(LIST))
    assert 'href="/ui/a/acme/?tag=a%20%26%20b"' in page
    assert "&lt;b&gt;who" in page


def test_pages(visit, add):
    add(*(f"t{number:03}" for number in range(205)))
    client = visit("alice")
    first = client.get(LIST, {"q": "t"})
    assert names(first) == [f"t{number:03}" for number in range(100)]
    second = client.get(first.context["next"])
    assert names(second) == [f"t{number:03}" for number in range(100, 200)]
    assert names(client.get(client.get(second.context["next"]).context["first"])) == names(first)
    assert second.context["listing"].total == 205


def test_an_account_without_tables(visit, account):
    page = text(visit("max").get(LIST))
    assert "create_table" in page
    assert f'href="{NEW}"' in page
    assert "/ui/a/acme/tables/sample/" in page
    assert 'id="filter"' not in page
    page = text(visit("eve").get(LIST))
    assert "create_table" in page
    assert "/ui/a/acme/tables/" not in page


def test_who_may_not_manage_tables_ticks_none(visit, add):
    add("people")
    assert 'name="table"' in text(visit("max").get(LIST))
    page = text(visit("eve").get(LIST))
    assert 'name="table"' not in page
    assert NEW not in page


# new


@pytest.mark.parametrize(
    "name", ["1abc", "tables", "TABLES", "ab", "a" * 64, "a-b", "PEOPLE", "", "$MetricsX", "ü12"]
)
def test_refuses_a_name(visit, add, account, name):
    add("people")
    answer = visit("max").post(NEW, {"name": name, "description": "kept"})
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in text(answer)
    assert "kept" in text(answer)
    assert existing(account) == {"people"}
    tried = visit("max").get(NEW, {"name": name}, headers=HTMX)
    assert text(tried).lstrip().startswith('<ul class="rules" id="name-rules"')
    assert not name or 'class="broken"' in text(tried)


def test_says_which_table_has_the_name(visit, add):
    add("People")
    assert "People already exists" in text(visit("max").get(NEW, {"name": "pEOPLE"}, headers=HTMX))


def test_creates_a_table(visit, account):
    client = visit("max")
    answer = client.post(
        NEW, {"name": " People ", "description": "who\r\nis who", "tags": "prod, Test ,prod,,PROD"}
    )
    assert answer["Location"] == "/ui/a/acme/t/People/"
    table = Table.objects.get(name="People")
    assert sorted(table.tags, key=str.casefold) == ["PROD", "Test"]
    assert Activity.objects.filter(table=table, actor="max").exists()


@pytest.mark.parametrize("tags", ["x" * 33, ",".join(f"t{number}" for number in range(13))])
def test_refuses_tags(visit, account, tags):
    assert visit("max").post(NEW, {"name": "people", "tags": tags}).status_code == 422
    assert existing(account) == set()


def test_creates_a_table_with_sample_data(visit, account):
    client = visit("max")
    for name in ("people", "people2"):
        assert client.post("/ui/a/acme/tables/sample/")["Location"] == f"/ui/a/acme/t/{name}/"
    size = table_list.sizes([Table.objects.get(name="people2")])["people2"]
    assert (size.entities, size.partitions) == (300, 6)
    page = text(client.get("/ui/a/acme/t/people/"))
    for type_ in ("String", "Int32", "Int64", "Double", "Boolean", "DateTime", "Guid", "Binary"):
        assert type_ in page


# delete, restore, tags


def test_deletes_and_restores(visit, account, people, add):
    people("se", "1")
    policies.replace(account.pk, "people", [SignedIdentifier("reader", AccessPolicy(permission="r"))])
    tables.change(tables.get(account.pk, "people"), tags=["prod"], description="who")
    add("other")
    client = visit("max")
    answer = client.post(DELETE, {"table": ["people", "other", "people", "nothing"], "q": "o"})
    assert answer["Location"] == "/ui/a/acme/?q=o"
    assert existing(account) == set()
    page = client.get(LIST)
    assert [gone.table.name for gone in page.context["deleted"]] == ["other", "people"]
    assert page.context["deleted"][0].days_left == 7
    (done,) = [str(message) for message in page.context["messages"] if "Deleted" in str(message)]
    assert done == "Deleted 2 tables."
    assert re.search(r"/ui/undo/\d+,\d+/", text(page))
    wanted = page.context["deleted"][1].table.pk
    assert client.post(RESTORE, {"table": wanted}).status_code == 302
    table = tables.get(account.pk, "people")
    assert (table.tags, table.description) == (["prod"], "who")
    assert [policy.identifier for policy in table.policies.all()] == ["reader"]
    assert table_list.sizes([table])["people"].entities == 1


def test_restore_refuses(visit, account, add):
    add("people")
    client = visit("max")
    client.post(DELETE, {"table": "people"})
    gone = client.get(LIST).context["deleted"][0].table.pk
    add("People")
    client.post(RESTORE, {"table": gone})
    assert "Another table is named people" in said(client)
    assert existing(account) == {"People"}
    client.post(RESTORE, {"table": "x"})
    assert "can no longer be restored" in said(client)


def test_a_deleted_table_is_not_offered_to_who_may_not_restore(visit, add):
    add("people")
    visit("max").post(DELETE, {"table": "people"})
    assert "Recently deleted" in text(visit("max").get(LIST))
    assert "Recently deleted" not in text(visit("eve").get(LIST))


def test_a_protected_account_wants_its_name(visit, account, add):
    add("people")
    account.protected = True
    account.save()
    client = visit("max")
    asked = client.post(DELETE, {"table": "people"})
    assert asked.status_code == 422
    assert "Type acme to confirm" in text(asked)
    assert 'aria-invalid="true"' not in text(asked)
    refused = client.post(DELETE, {"table": "people", "confirm": "Acme"})
    assert 'aria-invalid="true"' in text(refused)
    assert existing(account) == {"people"}
    assert client.post(DELETE, {"table": "people", "confirm": "acme"}).status_code == 302
    assert existing(account) == set()


def test_tags_several_tables(visit, account, add):
    add("people", tags=["old"])
    add("carts", "other")
    client = visit("max")
    answer = client.post(TAGS, {"table": ["people", "carts"], "add": "prod, OLD", "q": "x"})
    assert answer["Location"] == "/ui/a/acme/?q=x"
    assert {table.name: table.tags for table in Table.objects.own()} == {
        "people": ["OLD", "prod"],
        "carts": ["prod", "OLD"],
        "other": [],
    }
    client.post(TAGS, {"table": ["people", "nothing"], "add": "new"})
    client.post(TAGS, {"table": ["people"], "add": "x" * 33})
    assert Table.objects.get(name="people").tags == ["OLD", "prod"]
    assert "32 characters" in said(client)


def test_refuses_writes_while_the_account_is_read_only(visit, account, add):
    add("people")
    account.read_only = True
    account.save()
    client = visit("max")
    client.post(DELETE, {"table": "people"})
    client.post(TAGS, {"table": "people", "add": "x"})
    assert client.post(NEW, {"name": "carts"}).status_code == 422
    assert client.post(f"{SETTINGS}notes/", {"description": "x"}).status_code == 422
    assert existing(account) == {"people"}


# one table


def test_settings(visit, people, account):
    policies.replace(account.pk, "people", [SignedIdentifier("reader", AccessPolicy(permission="r"))])
    assert ">1 of 5</a>" in text(visit("victor").get("/ui/a/acme/"))
    page = text(visit("victor").get(SETTINGS))
    assert 'href="/ui/a/acme/t/people/acl/"' in page
    assert "notes/" not in page
    assert f'action="{DELETE}"' not in page
    assert visit("victor").get("/ui/a/acme/t/PEOPLE/settings/")["Location"] == SETTINGS
    assert visit("victor").get("/ui/a/acme/t/nothing/settings/").status_code == 404


def test_saves_notes(visit, people, account):
    client = visit("max")
    answer = client.post(f"{SETTINGS}notes/", {"description": "<b>", "tags": "a, b"})
    assert answer["Location"] == SETTINGS
    page = text(client.get(SETTINGS))
    assert "&lt;b&gt;" in page
    assert 'value="a, b"' in page
    assert "Saved the notes for people." in page
    answer = client.post(f"{SETTINGS}notes/", {"description": "x" * 2001, "tags": "a"})
    assert answer.status_code == 422
    assert tables.get(account.pk, "people").description == "<b>"


def test_notes_that_somebody_else_wrote_meanwhile_stay(visit, people, account):
    client = visit("max")
    table = tables.get(account.pk, "people")
    tables.change(table, description="theirs", tags=["old"])
    assert 'name="initial-tags" value="old"' in client.get("/ui/a/acme/t/people/settings/").content.decode()
    sent = {"description": "", "tags": "old, new", "initial-description": "", "initial-tags": "old"}
    client.post("/ui/a/acme/t/people/settings/notes/", sent)
    table = tables.get(account.pk, "people")
    assert (table.description, table.tags) == ("theirs", ["old", "new"])
