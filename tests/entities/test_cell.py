"""The editor of a cell: it saves one property on the condition of the row as shown, and refuses with a reason."""

import re

import pytest

from console.grid import saved_urls
from console.grid.tokens import encode_key
from console.models import EditMode, User
from storage.accounts import account_settings
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.etag import ANY, write_etag
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.entities.subject import EntityVerb
from storage.models import Activity
from storage.relations import history
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from tests.fixtures import as_edm

ADA = EntityKey("se", "ada")
HTMX = {"HX-Request": "true"}
TIME = r"<time [^>]*>(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d</time>"  # with the date right after midnight
EDITOR = "/ui/a/acme/t/people/cell/"
CHECK = "/ui/a/acme/t/people/cell/check/"
HOSTILE = "<img src=x onerror=alert(1)>\"'</textarea>"


@pytest.fixture
def ada(add_entity):
    """Add an entity with values of all kinds."""
    values = {"Name": "Ada", "Age": 36, "Score": 5.75, "Zero": EdmValue(Edm.DOUBLE, -0.0), "Long": "x" * 300}
    exact = {"Big": EdmValue(Edm.INT64, 2**63 - 1), "Since": EdmValue(Edm.DATETIME, 1_504_099_233_4139141)}
    add_entity(*ADA, **values, **exact, Photo=b"\x00\xff", Odd="a\r\n\x00", Html=HOSTILE)


def stored(account, key=ADA):
    return entities.get(tables.get(account, "people"), key)


def properties(account, key=ADA):
    return read_stored(stored(account, key)).properties


def etag(account, key=ADA):
    return write_etag(stored(account, key).timestamp)


def change(account, **values):
    """Merge values as a client does."""
    table = tables.get(account, "people")
    results = {name: as_edm(value) for name, value in values.items()}
    run(sql.change(relation_name(table.pk), Update(Entity(ADA, results), ANY, merge=True)))


def form(account, name, type_, value, **more):
    return {
        "key": encode_key(ADA),
        "property": name,
        "etag": etag(account),
        "type": f"Edm.{type_}",
        "value": value,
        **more,
    }


def opened(client, name, **more):
    return client.get(EDITOR, {"key": encode_key(ADA), "property": name, **more}, headers=HTMX)


def test_opens_with_the_exact_text(visit, ada):
    client = visit("eve")
    for name, text in (
        ("Age", 'value="36"'),
        ("Big", 'value="9223372036854775807"'),
        ("Zero", 'value="-0.0"'),
        ("Since", 'value="2017-08-30T13:20:33.4139141Z"'),
        ("Photo", "\n00ff</textarea>"),
        ("Odd", "&quot;a\\r\\n\\u0000&quot;"),
    ):
        answer = opened(client, name)
        assert answer.status_code == 200
        assert text in answer.content.decode(), name
        assert b"<html" not in answer.content


def test_an_absent_property_begins_with_the_type_of_its_column(visit, ada):
    answer = opened(visit("eve"), "Missing", type="Edm.Int64")
    assert b'<option value="Edm.Int64" selected>' in answer.content
    assert b'value="remove"' not in answer.content


def test_times_are_edited_as_the_grid_shows_them(visit, account, ada):
    client = visit("eve")
    User.objects.filter(username="eve").update(time_zone="Europe/Istanbul")
    page = opened(client, "Since").content.decode()
    assert 'value="2017-08-30 16:20:33.4139141+03:00"' in page
    assert "Stored as 2017-08-30T13:20:33.4139141Z" in page and "use Europe/Istanbul" in page
    saved = saved_urls.keep(tables.get(account, "people"), "tz=utc")
    for query in ("tz=utc", f"{saved_urls.NAME}={saved.key}"):
        page = opened(client, "Since", next=f"/ui/a/acme/t/people/?{query}").content.decode()
        assert 'value="2017-08-30T13:20:33.4139141Z"' in page and "use UTC" in page
    page = client.get("/ui/a/acme/t/people/entity/?pk=se&rk=ada").content.decode()
    assert 'value="2017-08-30 16:20:33.4139141+03:00"' in page
    assert "Stored as" not in page


def test_reports_a_row_changed_since_display(visit, ada):
    answer = opened(visit("eve"), "Age", etag="W/\"datetime'2020-01-01T00%3A00%3A00Z'\"")
    assert b"has changed since the page was loaded" in answer.content


def test_opens_nothing_else(visit, ada):
    for query in (
        {},
        {"key": "x", "property": "Age"},
        {"key": encode_key(EntityKey("se", "gone")), "property": "Age"},
        {"property": "PartitionKey"},
        {"property": "bad name"},
    ):
        assert visit("eve").get(EDITOR, {"key": encode_key(ADA), **query}).status_code == 404


def test_saves_one_property_and_keeps_others_exactly(visit, ada, account):
    before = properties(account)
    answer = visit("eve").post(EDITOR, form(account, "Age", "Int32", "1_037"), headers=HTMX)
    assert answer.status_code == 200
    assert b"data-row" in answer.content and b"Age saved" in answer.content and b"data-undo" in answer.content
    after = properties(account)
    assert after.pop("Age") == EdmValue(Edm.INT32, 1037)
    before.pop("Age")
    assert repr(sorted(after.items())) == repr(sorted(before.items()))
    assert Activity.objects.latest("pk").verb == EntityVerb.CHANGE


def test_a_plain_form_goes_back_to_the_grid(visit, ada, account):
    answer = visit("eve").post(
        EDITOR, form(account, "Age", "Int32", "5", next="/ui/a/acme/t/people/?f=Age%20ge%201")
    )
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/t/people/?f=Age%20ge%201")
    away = visit("eve").post(EDITOR, form(account, "Age", "Int32", "6", next="//evil.example/"))
    assert away["Location"] == "/ui/a/acme/t/people/"


@pytest.mark.parametrize(
    ("name", "type_", "text", "value"),
    [
        ("Name", "String", "two\r\nlines", "two\nlines"),
        ("Odd", "String", '"b\\r\\u0000"', "b\r\x00"),
        ("New", "Boolean", None, False),  # a switch that is off
        ("New", "Double", "-0", -0.0),
        ("Photo", "Binary", "0a 0b", b"\x0a\x0b"),
    ],
)
def test_saves_each_type(visit, ada, account, name, type_, text, value):
    sent = form(account, name, type_, text, form="escaped" if name == "Odd" else "")
    sent = {field: text for field, text in sent.items() if text is not None}
    assert visit("eve").post(EDITOR, sent, headers=HTMX).status_code == 200
    assert repr(properties(account)[name]) == repr(EdmValue(Edm(f"Edm.{type_}"), value))


def test_saves_a_time_that_only_a_cosmos_account_has(visit, ada, account):
    account.kind = AccountKind.COSMOS
    account.save()
    sent = form(account, "Since", "DateTime", "0001-01-01T00:00:00Z")
    assert b"1601" not in visit("eve").post(CHECK, sent, headers=HTMX).content
    assert visit("eve").post(EDITOR, sent, headers=HTMX).status_code == 200
    assert properties(account)["Since"].value == FIRST_COSMOS_TICK
    assert b"0001-01-01T00:00:00Z" in opened(visit("eve"), "Since").content
    sent = form(account, "Since", "DateTime", "0000-01-01T00:00:00Z")
    assert b"between the years 1 and 9999" in visit("eve").post(CHECK, sent, headers=HTMX).content

    # as text and back
    sent = form(account, "Since", "String", "", action="retype") | {"from": "Edm.DateTime"}
    sent["value"] = "0001-01-01T00:00:00Z"
    assert b"Converted from DateTime." in visit("eve").post(EDITOR, sent, headers=HTMX).content
    sent |= {"from": "Edm.String", "type": "Edm.DateTime"}
    assert b"Converted from String." in visit("eve").post(EDITOR, sent, headers=HTMX).content

    # it is shown in a conflict
    stale = form(
        account,
        "Since",
        "DateTime",
        "0002-01-01T00:00:00Z",
        was='["Edm.DateTime", "0001-01-01T00:00:00Z", 0]',
    )
    change(account, Since=EdmValue(Edm.DATETIME, 0))
    conflict = visit("eve").post(EDITOR, stale, headers=HTMX)
    assert conflict.status_code == 412
    assert all(year in conflict.content for year in (b"0001-01-01", b"0002-01-01", b"1970-01-01"))


def test_removes_a_property(visit, ada, account):
    answer = visit("eve").post(EDITOR, form(account, "Age", "Int32", "36", action="remove"), headers=HTMX)
    assert b"Age removed" in answer.content
    assert "Age" not in properties(account) and "Name" in properties(account)


def test_refuses_invalid_values_and_keeps_the_text(visit, ada, account):
    answer = visit("eve").post(EDITOR, form(account, "Age", "Int32", "5454161346626"), headers=HTMX)
    assert answer.status_code == 422
    assert b"out of range" in answer.content and b'data-cell-suggest="Edm.Int64"' in answer.content
    assert b'value="5454161346626"' in answer.content
    assert properties(account)["Age"].value == 36


def test_refuses_an_oversized_entity(visit, add_entity, account):
    add_entity(*ADA, **{f"P{number}": "x" * 32_000 for number in range(16)})
    answer = visit("eve").post(EDITOR, form(account, "More", "String", "x" * 32_000), headers=HTMX)
    assert answer.status_code == 422
    assert b"larger than the maximum" in answer.content


def test_a_stale_row_conflict_shows_both_values(visit, ada, account):
    sent = form(account, "Age", "Int32", "40", was=opened(visit("eve"), "Age").context["was"])
    visit("alice").post(EDITOR, form(account, "Age", "Int32", "38"), headers=HTMX)
    answer = visit("eve").post(EDITOR, sent, headers=HTMX)
    assert answer.status_code == 412
    text = answer.content.decode()
    assert "changed while you were editing" in text and "Changed by <bdi>alice</bdi> at" in text
    assert [part in text for part in (">36<", ">38<", ">40<")] == [True] * 3
    assert properties(account)["Age"].value == 38
    assert visit("eve").post(EDITOR, {**sent, "etag": etag(account)}, headers=HTMX).status_code == 200
    assert properties(account)["Age"].value == 40


@pytest.mark.parametrize(
    ("before", "theirs", "mine", "shown"),
    [
        ("Ağan", "Hélène", "王小明", ["<bdi>Ağan</bdi>", "<bdi>Hélène</bdi>", "<bdi>王小明</bdi>"]),
        (" a\n\x00", HOSTILE, "", ['<span class="mark">·</span>a', "&lt;img", 'title="empty string"']),
        ("é" * 200, EdmValue(Edm.DATETIME, 1_504_099_233_4139141), "x", ["é…", ">2017-08-30 22:20:33<", "x"]),
        (None, b"\x00" * 30, "x", [">not set<", ">" + "00" * 24 + "…<", "x"]),
    ],
    ids=["letters", "unseen", "cut", "absent"],
)
def test_a_conflict_shows_values_as_the_grid_does(visit, add_entity, account, before, theirs, mine, shown):
    add_entity(*ADA, Age=36, **({} if before is None else {"Name": before}))
    eve = visit("eve")
    eve.cookies["tablero_zone"] = "Asia/Tokyo"
    page = opened(eve, "Name")
    sent = form(account, "Name", "String", mine, was=page.context["was"])
    change(account, Name=theirs)
    answer = eve.post(EDITOR, sent, headers=HTMX)
    assert answer.status_code == 412
    values = [row.split("</dd>")[0] for row in answer.content.decode().split('<dd class="mono">')[1:]]
    assert [part in value for part, value in zip(shown, values, strict=True)] == [True] * 3, values
    assert "\\u" not in "".join(values)


@pytest.mark.parametrize(
    "was",
    [
        "",
        "36",
        "[]",
        '["Edm.Int32", "x", 0]',
        '["Edm.Mars", "1", 0]',
        '["Edm.Binary", "00", 1e999]',
        "[" * 9999,
    ],
    ids=range(7),
)
def test_a_conflict_without_a_former_value(visit, add_entity, ada, account, was):
    sent = form(account, "Age", "Int32", "40", was=was)
    change(account, Age=38)
    answer = visit("eve").post(EDITOR, sent, headers=HTMX)
    assert answer.status_code == 412 and b"not set" in answer.content


def test_a_deleted_row_is_a_conflict_too(visit, ada, account):
    sent = form(account, "Age", "Int32", "40")
    visit("eve").post("/ui/a/acme/t/people/delete/", {"key": encode_key(ADA), "scope": "rows"})
    answer = visit("eve").post(EDITOR, sent, headers=HTMX)
    assert answer.status_code == 412 and b"<bdi>eve</bdi> deleted this entity at" in answer.content


@pytest.fixture
def by_a_client(account):
    """Return `by_a_client(change)`, which applies a change as an SDK does."""

    def by_a_client(change):
        table = tables.get(account, "people")
        by = Actor(ActorKind.KEY, "key1", "127.0.0.1", "azsdk")
        run(sql.change(relation_name(table.pk), change, history.recorder(account, by)))

    return by_a_client


def test_a_conflict_names_the_client_that_changed_the_entity(visit, ada, account, by_a_client):
    sent = form(account, "Age", "Int32", "40", was="36")
    by_a_client(Update(Entity(ADA, {"Age": EdmValue(Edm.INT32, 38)}), ANY, merge=True))
    answer = " ".join(visit("eve").post(EDITOR, sent, headers=HTMX).content.decode().split())
    assert re.search(
        rf'Changed with <bdi>key1</bdi> from <span class="mono">127.0.0.1</span> at {TIME}', answer
    )


def test_a_row_deleted_by_a_client_is_reinserted_with_the_typed_value(visit, ada, account, by_a_client):
    before = properties(account)
    sent = form(account, "Age", "Int32", "40")
    by_a_client(Delete(ADA, ANY))
    client = visit("eve")
    editor = opened(client, "Age", type="Edm.Int32")
    assert editor.status_code == 200  # the page puts what is typed into it
    for answer in (editor, client.post(EDITOR, sent, headers=HTMX)):
        text = answer.content.decode()
        assert re.search(rf"<bdi>key1</bdi> deleted this entity at {TIME}", text)
        assert all(label in text for label in ("Insert again", "Copy text", "Discard"))
    assert client.get(EDITOR, {"key": encode_key(ADA), "property": "Age"}).status_code == 404  # as a page

    done = client.post(EDITOR, {**sent, "action": "insert", "index": "2"}, headers=HTMX)
    assert done.status_code == 200 and b"Inserted the entity again" in done.content and b"<tr" in done.content
    assert properties(account) == {**before, "Age": EdmValue(Edm.INT32, 40)}
    assert client.post(EDITOR, {**sent, "action": "insert"}, headers=HTMX).status_code == 412

    # opened after the deletion and left empty, it is as it was
    by_a_client(Delete(ADA, ANY))
    empty = {**sent, "value": "", "etag": "", "action": "insert", "index": "2"}
    assert client.post(EDITOR, empty, headers=HTMX).status_code == 200
    assert properties(account) == {**before, "Age": EdmValue(Edm.INT32, 40)}


def test_a_row_deleted_without_history_can_be_copied(visit, ada, account, by_a_client):
    account_settings.change(account, history_days=0)
    by_a_client(Delete(ADA, ANY))
    client = visit("eve")
    for answer in (opened(client, "Age"), client.post(EDITOR, form_of_gone("40"), headers=HTMX)):
        text = answer.content.decode()
        assert "This entity was deleted" in text and "Copy text" in text and "Insert again" not in text


def form_of_gone(value):
    sent = {"key": encode_key(ADA), "property": "Age", "type": "Edm.Int32", "value": value}
    return {**sent, "etag": "W/\"datetime'2020-01-01T00%3A00%3A00Z'\""}


def test_a_read_only_account_is_told_so(visit, ada, account, cast):
    account_settings.change(account, read_only=True)
    answer = visit("eve").post(EDITOR, form(account, "Age", "Int32", "40"), headers=HTMX)
    assert answer.status_code == 422 and b"not allowed" in answer.content
    assert properties(account)["Age"].value == 36


def test_nothing_of_a_value_is_markup(visit, ada, account):
    client = visit("eve")
    assert b"<img" not in opened(client, "Html").content
    answer = client.post(EDITOR, form(account, "Html", "Int32", HOSTILE), headers=HTMX)
    assert b"<img" not in answer.content
    assert b"<img" not in client.post(CHECK, form(account, "Html", "Int32", HOSTILE), headers=HTMX).content


def test_a_viewer_sees_nothing_to_edit_with(visit, ada):
    page = "/ui/a/acme/t/people/"
    shown = visit("victor").get(page).content
    assert b"data-value=" in shown
    assert b"data-cell=" in visit("eve").get(page).content
    for part in (b"data-cell=", b"cell.js", b"/paste/", b"/delete/", b'main-word">Add entity'):
        assert part not in shown


# validation while the user types


def checked(client, account, name, type_, value, **more):
    answer = client.post(CHECK, form(account, name, type_, value, **more), headers=HTMX)
    assert answer.status_code == 200
    return answer.content.decode()


def test_validates_while_the_user_types(visit, ada, account):
    client = visit("eve")
    assert "Enter a whole number" in checked(client, account, "Age", "Int32", "x")
    assert "Use Double" in checked(client, account, "Age", "Int32", "1.5")
    assert "Stored as 0.12345678901234568" in checked(
        client, account, "Score", "Double", "0.1234567890123456789"
    )
    assert "9,223,372,036,854,775,807" in checked(client, account, "Big", "Int64", "9223372036854775807")
    assert "Character 3" in checked(client, account, "Photo", "Binary", "00zz")
    assert "Invalid JSON at line 2, column 1" in checked(client, account, "Name", "String", '{"a": 1,\n')
    assert 'data-kind=""' in checked(client, account, "Name", "String", "anything")
    assert properties(account)["Age"].value == 36


def test_a_lossy_type_asks_for_a_tick(visit, ada, account):
    client = visit("eve")
    text = checked(client, account, "Age", "Int64", "36", **{"retype": "1", "from": "Edm.Int32"})
    assert "No data is lost" in text and 'name="agreed"' not in text
    text = checked(client, account, "Score", "Int32", "5.75", **{"retype": "1", "from": "Edm.Double"})
    assert "Converted from Double" in text and "digits after the decimal point are lost" in text
    assert 'value="5"' in text and 'name="agreed"' in text
    sent = form(account, "Score", "Int32", "5")
    refused = client.post(EDITOR, sent, headers=HTMX)
    assert refused.status_code == 422 and b'name="agreed"' in refused.content
    assert properties(account)["Score"].type is Edm.DOUBLE
    assert client.post(EDITOR, {**sent, "agreed": "on"}, headers=HTMX).status_code == 200
    assert properties(account)["Score"] == EdmValue(Edm.INT32, 5)


def test_without_script_a_button_changes_the_type(visit, ada, account):
    sent = form(account, "Age", "String", "36", action="retype", **{"from": "Edm.Int32"})
    answer = visit("eve").post(EDITOR, sent)
    assert answer.status_code == 200 and b"No data is lost" in answer.content
    assert properties(account)["Age"].type is Edm.INT32


# staged


def test_a_staged_cell_is_checked_but_not_saved(visit, ada, account, cast):
    assert b"data-staged" not in opened(visit("eve"), "Age").content
    cast["eve"].edit_mode = EditMode.STAGED
    cast["eve"].save()
    assert b"data-staged" in opened(visit("eve"), "Age").content
    account_settings.change(account, protected=True)  # there, everybody's are
    assert b"data-staged" in opened(visit("max"), "Age").content
    sent = form(account, "Since", "DateTime", "now", stage="1")
    text = visit("eve").post(EDITOR, sent, headers=HTMX).content.decode()
    assert "data-change" in text and 'data-text="now"' not in text
    refused = visit("eve").post(EDITOR, form(account, "Age", "Int32", "x", stage="1"), headers=HTMX)
    assert refused.status_code == 422
    assert properties(account)["Age"].value == 36
