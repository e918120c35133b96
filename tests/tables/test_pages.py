"""The tables of an account: the list, making and deleting them, and what people note about them."""

import re
from io import BytesIO
from zipfile import ZipFile

import pytest

from console.tables.tags import draw_cell
from storage.access import policies
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.values.edm import Edm
from storage.models import Account, Activity, Table
from storage.sql import background
from storage.tables import table_list, tables
from storage.tables.list_columns import COLUMNS, NAME, SORTABLE, Importance, Size, TableRow, columns_of
from storage.transfer.subject import TransferVerb
from tests.live_server import ROOT

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
            tables.change(tables.create(account, name), tags=list(tags), description=description)

    return add


def names(answer):
    return [table.name for table in answer.context["listing"].tables]


def text(answer):
    return answer.content.decode()


def said(client):
    return " ".join(str(message) for message in client.get(LIST).context["messages"])


def existing(account):
    return {table.name for table in Table.objects.existing().filter(account=account)}


# several at once


def test_removes_tags_from_several_and_undoes(visit, account, add):
    add("one", "two", tags=["Hot", "ml"])
    add("three", tags=["ml"])

    def tags():
        return dict(Table.objects.filter(account=account).values_list("name", "tags"))

    client = visit("max")
    client.post(f"{TAGS}remove/", {"table": ["one", "two", "three"], "add": "hot, absent"})
    assert tags() == {"one": ["ml"], "two": ["ml"], "three": ["ml"]}
    assert "Removed tags from 2 tables." in said(client)
    done = ",".join(str(it.pk) for it in Activity.objects.order_by("-pk")[:2])
    client.post(f"/ui/undo/{done}/", {"next": LIST})
    assert tags() == {"one": ["Hot", "ml"], "two": ["Hot", "ml"], "three": ["ml"]}


def test_exports_several_as_one_file(visit, account, add_entity, add):
    add("empty")
    add_entity("se", "1", Name="=Ada", Age=36)
    victor = visit("victor")
    answer = victor.post("/ui/a/acme/tables/export/", {"table": ["people", "empty"]})
    assert answer["Content-Disposition"] == 'attachment; filename="acme.zip"'
    with ZipFile(BytesIO(b"".join(answer.streaming_content))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["people.typed.csv", "empty.typed.csv"]
        lines = archive.read("people.typed.csv").decode().splitlines()
    assert lines[0].startswith("PartitionKey,RowKey,")
    assert lines[1].startswith("se,1,") and ",=Ada,String" in lines[1]
    sent = {"table": ["people"], "escape_formulas": "on"}
    answer = victor.post("/ui/a/acme/tables/export/", sent)
    with ZipFile(BytesIO(b"".join(answer.streaming_content))) as archive:
        assert b",'=Ada,String" in archive.read("people.typed.csv")
    assert Activity.objects.filter(verb=TransferVerb.EXPORT).count() == 3
    answer = victor.post("/ui/a/acme/tables/export/", {"table": ["people", "gone"]})
    assert answer["Location"] == LIST


# the list


def test_the_list_counts_no_partitions(visit, add, monkeypatch, django_assert_max_num_queries):
    add(*(f"t{number:02}" for number in range(30)))
    client = visit("alice")
    for name in ("partitions_up_to", "partitions_of"):
        monkeypatch.setattr(background, name, lambda *_: pytest.fail("partitions were counted"))
    with django_assert_max_num_queries(26):
        page = text(client.get(LIST, {"q": "t"}))
    assert 'hx-get="/ui/a/acme/tables/sizes/?q=t"' in page


def test_sizes_come_later(visit, add_entity, add):
    add("empty")
    for number in range(3):
        add_entity("se", f"{number:03}")
    victor = visit("victor")
    answer = victor.get("/ui/a/acme/tables/sizes/")
    assert re.search(r'id="entities-people" hx-swap-oob="true">\s*3\s*<', text(answer))
    assert re.search(r'id="partitions-people" hx-swap-oob="true">\s*1\s*<', text(answer))
    assert re.search(r'id="entities-empty" hx-swap-oob="true">\s*0\s*<', text(answer))
    page = text(victor.get(LIST, {"sizes": ""}))
    assert re.search(r'id="entities-people">\s*3\s*<', page)
    assert "hx-swap-oob" not in page


def test_the_sidebar_counts_as_the_list_does(visit, add_entity):
    for number in range(201):
        add_entity("se", f"{number:03}")
    client = visit("victor")
    listed = text(client.get("/ui/a/acme/tables/sizes/"))
    page = re.sub(r"\s+", " ", text(client.get("/ui/a/acme/t/people/")))
    assert re.search(r'id="entities-people" hx-swap-oob="true">\s*201\s*<', listed)
    assert "<span>people</span><em>201</em>" in page
    # an account without a colour has a ring, and no colour
    assert '<circle cx="5" cy="5" r="4" fill="none"' in page


def test_counts_exactly_on_demand(visit, add_entity, monkeypatch):
    monkeypatch.setattr(table_list, "_COUNTED", 2)
    for number in range(3):
        add_entity("se", f"{number:03}")
    client = visit("victor")
    assert "about" in text(client.get("/ui/a/acme/tables/sizes/"))
    assert "tables/sizes/?exactly=people" in text(client.get("/ui/a/acme/tables/sizes/"))
    assert text(client.get("/ui/a/acme/tables/sizes/", {"exactly": "people"})).strip() == "3"
    assert client.get("/ui/a/acme/tables/sizes/", {"exactly": "nothing"}).status_code == 404


def test_offers_to_count_tables_of_any_name(account):
    row = TableRow(Table(name="a&b #c"), Size(200, False, 0, None))
    drawn = draw_cell(COLUMNS["entities"], row, account)
    assert 'hx-get="/ui/a/acme/tables/sizes/?exactly=a%26b+%23c"' in drawn


def test_filters_in_the_address(visit, add):
    add("Carts", "people", "audit")
    client = visit("max")
    assert names(client.get(LIST)) == ["audit", "Carts", "people"]
    assert names(client.get(LIST, {"q": "a\0"})) == ["audit", "Carts"]
    answer = client.get(LIST, {"q": '<i>"%_'})
    assert names(answer) == []
    assert "&lt;i&gt;&quot;%_" in text(answer)
    assert "<i>" not in text(answer)
    answer = client.get(LIST, {"q": " CA ", "tag": ""}, headers=HTMX)
    assert names(answer) == ["Carts"]
    assert text(answer).lstrip().startswith('<div id="listing"')
    assert answer["HX-Replace-Url"] == "/ui/a/acme/?q=CA"
    assert 'name="table"' in text(answer)
    assert 'name="table"' not in text(visit("eve").get(LIST))  # she may not delete any


def test_offers_the_orders_where_no_heads_are(visit, add):
    add("people")
    for sort, chosen in (("", ""), ("-size", "-size"), ("size", "size"), ("-name", "-name")):
        page = text(visit("alice").get(LIST, {"sort": sort}))
        assert re.findall(r'<option value="([^"]*)" selected>', page) == [chosen]
        assert '<option value="-written"' in page


def test_sorts_in_the_address(visit, add):
    add("Carts", "people", "audit")
    client = visit("alice")
    answer = client.get(LIST, {"sort": "-name", "q": "a"})
    assert names(answer) == ["Carts", "audit"]
    assert re.findall(r'aria-sort="(\w+)"', text(answer)) == ["descending"]
    links = re.findall(r'<th scope="col"[^>]*><a href="([^"]*)"', text(answer).replace("\n", ""))
    amounts = [f"q=a&amp;sort=-{name}" for name in SORTABLE if name != "name"]
    assert [link.partition("?")[2] for link in links] == ["q=a", *amounts]
    turned = client.get(LIST, {"sort": "-created"})
    assert names(turned) == ["audit", "people", "Carts"]
    assert "?sort=created" in text(turned)
    assert names(client.get(LIST, {"sort": "nonsense"})) == ["audit", "Carts", "people"]


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


def test_pages(visit, account):
    known = [f"t{number:03}" for number in range(205)]
    Table.objects.bulk_create(Table(account=account, name=name, folded_name=name) for name in known)
    client = visit("alice")
    first = client.get(LIST, {"q": "t"})
    assert names(first) == known[:100]
    second = client.get(first.context["next"])
    assert names(second) == known[100:200]
    assert names(client.get(client.get(second.context["next"]).context["first"])) == names(first)
    assert second.context["listing"].total == 205


# new


def test_refuses_a_name(visit, add, account):
    add("People")
    client = visit("max")
    for name in ["1abc", "TABLES", "PEOPLE", "", "ü12"]:
        answer = client.post(NEW, {"name": name, "description": "kept"})
        assert answer.status_code == 422, name
        assert 'aria-invalid="true"' in text(answer), name
        assert "kept" in text(answer), name
        assert existing(account) == {"People"}, name
        tried = text(client.get(NEW, {"name": name}, headers=HTMX))
        assert tried.lstrip().startswith('<ul class="rules" id="name-rules"'), name
        assert not name or 'class="broken"' in tried, name
        assert ("People already exists" in tried) is (name == "PEOPLE"), name


def test_creates_a_table(visit, account):
    client = visit("max")
    answer = client.post(
        NEW, {"name": " People ", "description": "who\r\nis who", "tags": "prod, Test ,prod,,PROD"}
    )
    assert answer["Location"] == "/ui/a/acme/t/People/"
    table = Table.objects.get(name="People")
    assert sorted(table.tags, key=str.casefold) == ["PROD", "Test"]
    assert Activity.objects.filter(table=table, actor="max").exists()


def test_creates_a_table_with_sample_data(visit, account):
    client = visit("max")
    page = text(client.get(LIST))
    assert "create_table" in page and 'id="filter"' not in page
    assert f'href="{NEW}"' in page and "/ui/a/acme/tables/sample/" in page
    assert "/ui/a/acme/tables/" not in text(visit("eve").get(LIST))
    for name in ("people", "people2"):
        assert client.post("/ui/a/acme/tables/sample/")["Location"] == f"/ui/a/acme/t/{name}/"
    size = table_list.sizes([Table.objects.get(name="people2")])["people2"]
    assert (size.entities, size.partitions) == (300, 6)
    page = text(client.get("/ui/a/acme/t/people/"))
    assert all(type_.short_name in page for type_ in Edm)


# delete, restore, tags


def test_deletes_and_restores(visit, account, add_entity, add):
    add_entity("se", "1")
    policies.replace_by_name(account, "people", [SignedIdentifier("reader", AccessPolicy(permission="r"))])
    tables.change(tables.get(account, "people"), tags=["prod"], description="who")
    add("other")
    client = visit("max")
    answer = client.post(DELETE, {"table": ["people", "other", "people", "nothing"], "q": "o"})
    assert answer["Location"] == "/ui/a/acme/?q=o"
    assert existing(account) == set()
    page = client.get(LIST)
    assert [gone["table"].name for gone in page.context["deleted"]] == ["other", "people"]
    assert page.context["deleted"][0]["days_left"] == 7
    (done,) = [str(message) for message in page.context["messages"] if "Deleted" in str(message)]
    assert done == "Deleted 2 tables. You can restore them for 7 days."
    assert re.search(r"/ui/undo/\d+,\d+/", text(page))
    deleted_id = page.context["deleted"][1]["table"].pk
    assert client.post(RESTORE, {"table": deleted_id}).status_code == 302
    table = tables.get(account, "people")
    assert (table.tags, table.description) == (["prod"], "who")
    assert [policy.identifier for policy in table.policies.all()] == ["reader"]
    assert table_list.sizes([table])["people"].entities == 1


def test_restore_refuses(visit, account, add):
    add("people")
    client = visit("max")
    client.post(DELETE, {"table": "people"})
    gone = client.get(LIST).context["deleted"][0]["table"].pk
    assert "Recently deleted" not in text(visit("eve").get(LIST))
    add("People")
    client.post(RESTORE, {"table": gone})
    assert "Another table is named people" in said(client)
    assert existing(account) == {"People"}
    client.post(RESTORE, {"table": "x"})
    assert "can no longer be restored" in said(client)


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
    assert {table.name: table.tags for table in Table.objects.existing()} == {
        "people": ["OLD", "prod"],
        "carts": ["prod", "OLD"],
        "other": [],
    }
    client.post(TAGS, {"table": ["people", "nothing"], "add": "new"})
    client.post(TAGS, {"table": ["people"], "add": "x" * 33})
    assert Table.objects.get(name="people").tags == ["OLD", "prod"]
    assert "32 characters" in said(client)


# one table


def test_settings(visit, add_entity, account):
    policies.replace_by_name(account, "people", [SignedIdentifier("reader", AccessPolicy(permission="r"))])
    victor = visit("victor")
    assert ">1 of 5</a>" in text(victor.get("/ui/a/acme/"))
    page = text(victor.get(SETTINGS))
    assert 'href="/ui/a/acme/t/people/acl/"' in page
    assert "notes/" not in page
    assert f'action="{DELETE}"' not in page


def test_the_letter_case_of_a_table_is_that_of_its_maker(visit, add_entity):
    add_entity("se", "1")
    client = visit("victor")
    for page in ["", "settings/", "acl/", "entity/?pk=se&rk=1", "?f=A+eq+1"]:
        answer = client.get(f"/ui/a/acme/t/PEOPLE/{page}")
        assert (answer.status_code, answer["Location"]) == (301, f"/ui/a/acme/t/people/{page}"), page
        assert client.get(f"/ui/a/acme/t/nothing/{page}").status_code == 404, page


def test_saving_notes_keeps_concurrent_changes(visit, add_entity, account):
    client = visit("max")
    table = tables.get(account, "people")
    tables.change(table, description="<b>theirs", tags=["old"])
    assert 'name="initial-tags" value="old"' in text(client.get(SETTINGS))
    sent = {"description": "", "tags": "old, new", "initial-description": "", "initial-tags": "old"}
    assert client.post(f"{SETTINGS}notes/", sent)["Location"] == SETTINGS
    page = text(client.get(SETTINGS))
    assert "&lt;b&gt;theirs" in page
    assert 'value="old, new"' in page
    assert "Saved the notes for people." in page
    table = tables.get(account, "people")
    assert (table.description, table.tags) == ("<b>theirs", ["old", "new"])
    # a field that both have changed is replaced once that was said
    sent = {"description": "mine", "tags": "", "initial-description": "", "initial-tags": "old"}
    refused = client.post(f"{SETTINGS}notes/", sent)
    assert refused.status_code == 422
    assert "Changed in the meantime to “&lt;b&gt;theirs”. Save again to replace that." in text(refused)
    assert "Changed in the meantime to “old, new”." in text(refused)
    assert tables.get(account, "people").tags == ["old", "new"]
    assert 'name="initial-description" value="&lt;b&gt;theirs"' in text(refused)
    sent |= {"initial-description": "<b>theirs", "initial-tags": "old, new"}
    assert client.post(f"{SETTINGS}notes/", sent).status_code == 302
    assert tables.get(account, "people").description == "mine"
    for wrong in ({"description": "x" * 2001}, {"tags": "x" * 33}, {"tags": ",".join(map(str, range(13)))}):
        assert client.post(f"{SETTINGS}notes/", wrong).status_code == 422


def test_the_other_pages_of_the_account_have_its_tables_beside_them(visit, add):
    add("people", "orders")
    for address in ("overview/", "snapshots/", "keys/", "settings/"):
        page = text(visit("alice").get(f"/ui/a/acme/{address}"))
        assert re.findall(r'<li data-filter-text="(\w+)">', page) == ["orders", "people"], address


def test_draws_each_column(visit, add_entity):
    add_entity("se", "1")
    page = text(visit("alice").get(LIST, {"sizes": ""}))
    cells = re.findall(r'<td class="number[^>]*>(.*?)</td>', page, re.DOTALL)
    assert len(cells) == len(COLUMNS) - 1
    assert all(re.sub(r"<[^>]*>|\s", "", cell) for cell in cells)


@pytest.mark.parametrize("kind", ["storage", "cosmos"])
def test_narrow_pages_hide_the_least_important_columns(visit, account, add, kind):
    """The columns are chosen by their meaning, because accounts of one kind have a column more."""
    add("people")
    Account.objects.filter(pk=account.pk).update(kind=kind)
    page = text(visit("alice").get(LIST))
    for importance in Importance:
        columns = [
            column.label
            for column in columns_of(kind)
            if column.importance is importance and column is not NAME
        ]
        class_ = f"is-{importance}"
        assert re.findall(rf'<td class="[^"]*{class_}[^"]*" data-label="([^"]+)"', page) == columns
        assert len(re.findall(rf'<th scope="col"[^>]* class="[^"]*{class_}', page)) == len(columns)
    style = (ROOT / "static/console/tables/tables.css").read_text()
    assert "nth-" not in style
    assert ".is-optional { display: none; }" in style and ".is-minor { display: none; }" in style


def test_deleting_keeps_the_order_of_the_list(visit, account, add):
    add("people")
    Account.objects.filter(pk=account.pk).update(protected=True)
    state = {"table": ["people"], "q": "e", "tag": "", "after": "", "sort": "-size"}
    max_ = visit("max")
    asked = max_.post(DELETE, state)
    fields = dict(re.findall(r'<input\s+type="hidden"\s+name="(\w+)"\s+value="([^"]*)"', text(asked)))
    assert {name: fields[name] for name in ("q", "sort")} == {"q": "e", "sort": "-size"}
    answer = max_.post(DELETE, {**state, "confirm": "acme"})
    assert answer["Location"] == "/ui/a/acme/?q=e&sort=-size"
