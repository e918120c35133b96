"""The page of one entity: it shows the stored values and saves only those that the user changed."""

import math
import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from console.grid import tokens
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue, read_datetime
from storage.domain.values.etag import ANY
from storage.domain.values.kinds import AccountKind
from storage.editing import merge
from storage.entities import edits, entities
from storage.history import changes
from storage.models import Account, Activity, Table
from storage.relations.history import recorder
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from tests.console import markup
from tests.console.forms import fields_of

PEOPLE = "/ui/a/acme/t/people/"
ADA = '{"PartitionKey": "se", "RowKey": "ada"'  # the beginning of her JSON
HOSTILE = {
    "Text": EdmValue(Edm.STRING, "'\"\\%s {{ 7 }} <img src=x> 🦊"),
    "Lines": EdmValue(Edm.STRING, "\n first\n\nlast\n"),
    "Windows": EdmValue(Edm.STRING, "a\r\nb\rc"),
    "Half": EdmValue(Edm.STRING, "\ud800 \x00"),
    "Blank": EdmValue(Edm.STRING, "  "),
    "Json": EdmValue(Edm.STRING, '{"a": [1.10, {}]}'),
    "Long": EdmValue(Edm.STRING, "é" * 32 * 1024),
    "Small": EdmValue(Edm.INT32, -(2**31)),
    "Big": EdmValue(Edm.INT64, 2**63 - 1),
    "Zero": EdmValue(Edm.DOUBLE, -0.0),
    "Nan": EdmValue(Edm.DOUBLE, math.nan),
    "Since": EdmValue(Edm.DATETIME, 17_000_000_001_234_567),
    "First": EdmValue(Edm.DATETIME, -116444736000000000),
    "Id": EdmValue(Edm.GUID, "00000000-0000-0000-0000-00000000000a"),
    "Nothing": EdmValue(Edm.BINARY, b""),
    "Large": EdmValue(Edm.BINARY, bytes(range(256)) * 256),
    "Yes": EdmValue(Edm.BOOLEAN, True),
    "No": EdmValue(Edm.BOOLEAN, False),
    "Ünïcode": EdmValue(Edm.INT32, 1),
}


def address(partition_key="se", row_key="ada", page="entity/", **more):
    return f"{PEOPLE}{page}?{urlencode({'pk': partition_key, 'rk': row_key, **more})}"


def table():
    return Table.objects.get(name="people")


def stored(partition_key="se", row_key="ada"):
    return entities.get(table(), EntityKey(partition_key, row_key))


def properties(*key):
    result = stored(*key)
    return None if result is None else dict(read_stored(result).properties)


def is_same(one, other):
    return merge.changed_names(one, other) == []


def number_of(answer, name):
    return next(row.number for row in answer.context["draft"].rows if row.name == name)


def save(client, answer, *, to=None, **changes):
    """Save the form with changes by property: a text, a dictionary of the fields of its row, or None to remove it."""
    fields = {}
    for name, change in changes.items():
        number = number_of(answer, name)
        if change is None:
            fields[f"remove-{number}"] = "1"
        elif isinstance(change, dict):
            fields |= {f"{field}-{number}": value for field, value in change.items()}
        else:
            fields[f"value-{number}"] = change
    return client.post(to or answer.context["address"], fields_of(answer, **fields))


def new_row(name, type_, text, number=900):
    return {f"name-{number}": name, f"type-{number}": type_, f"value-{number}": text, f"new-{number}": "1"}


@pytest.fixture
def opened(visit, add_entity):
    """Return `opened(Name="Ada")`, which makes an entity and opens its page as Eve."""

    def open_it(partition_key="se", row_key="ada", who="eve", **values):
        add_entity(partition_key, row_key, **values)
        client = visit(who)
        return client, client.get(address(partition_key, row_key))

    return open_it


def test_saves_only_changed_properties(opened):
    client, page = opened(**HOSTILE)
    for mode, number in (("merge", 7), ("replace", 8)):
        before = stored()
        changed = {f"value-{number_of(page, 'Small')}": str(number)}
        answer = client.post(address(), fields_of(page, mode=mode, **changed))
        assert (answer.status_code, answer["Location"]) == (303, address()), mode
        assert is_same(properties(), {**HOSTILE, "Small": EdmValue(Edm.INT32, number)}), mode
        [change] = changes.made_by(Activity.objects.filter(verb="entity.change").latest("pk"))
        assert change.before == before, mode
        page = client.get(address())
        assert "Saved 1 property" in page.content.decode(), mode
        assert "/ui/undo/" in page.content.decode(), mode


def test_an_untouched_form_changes_nothing(opened):
    client, page = opened(**HOSTILE)
    before = stored()
    assert save(client, page).status_code == 303
    assert client.post(address(), fields_of(page, mode="replace")).status_code == 303
    json = client.get(address(tab="json"))
    assert client.post(address(), fields_of(json)).status_code == 303
    assert stored() == before
    assert not Activity.objects.filter(verb="entity.change").exists()


def test_removes_and_adds(opened):
    client, page = opened(Name="Ada", Age=36)
    fields = fields_of(
        page, **{f"remove-{number_of(page, 'Age')}": "1", **new_row("New", "Edm.Int64", "1_000")}
    )
    answer = client.post(address(), fields)
    assert answer.status_code == 303
    assert properties() == {"Name": EdmValue(Edm.STRING, "Ada"), "New": EdmValue(Edm.INT64, 1000)}
    assert b"Merge cannot remove" in client.get(address()).content


def test_keeps_invalid_input(opened):
    client, page = opened(Value="a", Other="b")
    for type_, text, problem in [
        ("Edm.Int32", "2147483648", "out of range"),
        ("Edm.Guid", "1", "32 hexadecimal"),
        ("Edm.String", "x" * 32769, "64 KiB"),
    ]:
        answer = save(client, page, Value={"type": type_, "value": text}, Other="c")
        assert answer.status_code == 422, (type_, text)
        content = answer.content.decode()
        assert all(part in content for part in (problem, text, 'aria-invalid="true"', "data-dirty")), type_
        assert properties()["Value"].value == "a", (type_, text)
        assert fields_of(answer)[f"value-{number_of(answer, 'Other')}"] == "c", (type_, text)


def test_refuses_a_name(opened):
    client, page = opened(Name="Ada")
    for name, problem in [
        ("PartitionKey", "This name is reserved"),
        ("Name", "already"),
        ("a b", "starts with a letter"),
        ("", "Enter a property name"),
        ("n" * 256, "up to 255"),
    ]:
        answer = client.post(address(), fields_of(page, **new_row(name, "Edm.String", "x")))
        assert answer.status_code == 422, (name, problem)
        assert problem in answer.content.decode(), (name, problem)
        assert list(properties()) == ["Name"], (name, problem)


def test_refuses_a_253rd_property(opened):
    client, page = opened(**{f"P{n}": n for n in range(252)})
    assert "<b data-property-count>252</b> / 252" in page.content.decode()
    answer = client.post(address(), fields_of(page, **new_row("More", "Edm.String", "x")))
    assert answer.status_code == 422
    assert "up to 252 properties. This one has 253" in answer.content.decode()
    assert '<div class="over">' in answer.content.decode()


def test_refuses_more_than_a_mebibyte(opened):
    client, page = opened(**{f"P{n}": bytes(64 * 1024) for n in range(15)})
    more = {**new_row("M1", "Edm.String", "x" * 32_000), **new_row("M2", "Edm.String", "x" * 32_000, 901)}
    answer = client.post(address(), fields_of(page, **more))
    assert answer.status_code == 422
    assert "up to 1 MiB" in answer.content.decode()
    assert "entity-size over" in answer.content.decode()
    assert len(properties()) == 15


def test_an_entity_of_a_mebibyte_can_be_edited(opened):
    values = {f"T{n}": "é" * 32_000 for n in range(15)} | {"Age": 1}
    client, page = opened(**values)
    answer = save(client, page, Age="2", T3="short")
    assert answer.status_code == 303
    assert (properties()["Age"].value, properties()["T3"].value) == (2, "short")
    assert properties()["T4"].value == "é" * 32_000


def test_a_read_only_account(opened):
    client, page = opened(Name="Ada")
    Account.objects.update(read_only=True)
    answer = save(client, page, Name="Eva")
    assert answer.status_code == 422
    assert "read-only" in answer.content.decode()


def test_any_key_opens_edits_and_deletes(opened):
    for key in (("", ""), ("", "r"), ("p q", "%2F'\"&=+🦊"), ("<b>", "{{ 7 }}")):
        client, page = opened(*key, Name="Ada")
        assert save(client, page, Name="Eva").status_code == 303, key
        assert properties(*key)["Name"].value == "Eva", key
        page = client.get(address(*key))
        answer = client.post(address(*key), {"action": "delete", "etag": page.context["etag"]})
        assert (answer.status_code, answer["Location"]) == (303, PEOPLE), key
        assert properties(*key) is None, key


def test_a_key_that_none_has(visit, add_entity):
    add_entity("se", "", Name="Ada")
    add_entity("", "ada", Name="Ada")
    client = visit("eve")
    for query in ["", "pk=se", "rk=ada", "pk=%00&rk=", "pk=a%2Fb&rk=c"]:
        gone = client.get(f"{PEOPLE}entity/?{query}")
        assert (gone.status_code, "Restore" in gone.content.decode()) == (404, False), query
    assert "No entity has this key" in client.get(address()).content.decode()


def test_deletes_only_the_seen_version(opened):
    client, page = opened(Name="Ada")
    edits.apply(table(), [Update(Entity(EntityKey("se", "ada"), {}), ANY, merge=True)], by=SERVER)
    answer = client.post(address(), {"action": "delete", "etag": page.context["etag"]}, follow=True)
    assert "was changed since you opened it" in answer.content.decode()
    assert properties() is not None
    assert client.post(address(), {"action": "delete", "etag": "*"}).status_code == 404
    assert client.post(address(), {"action": "delete"}).status_code == 404


def test_a_viewer_reads_values_as_text(visit, add_entity):
    add_entity("se", "ada", **HOSTILE)
    client = visit("victor")
    for tab in ("form", "json", "snippets"):
        page = client.get(address(tab=tab))
        assert page.status_code == 200
        content = page.content.decode()
        assert 'value="save"' not in content
        assert 'value="delete"' not in content
    text = client.get(address()).content.decode()
    assert "entity-values" in text and "9223372036854775807" in text and "&lt;img src=x&gt;" in text
    for tool in ("data-type", "data-remove", "data-generate", 'type="file"', 'name="action"', "trash-2"):
        assert tool not in text, tool
    for where in ("entity/", "entity/new/", "entity/key/", "entity/row/"):
        assert client.post(address(page=where)).status_code == 403


def test_properties_are_in_the_order_of_the_columns(visit, add_entity):
    add_entity("se", "1", Name="Ada", Age=36, Zeal=1)
    eve = visit("eve")
    eve.get("/ui/a/acme/t/people/")  # arranges the columns
    add_entity("se", "2", Zeal=2, Age=37, Name="Grace")

    def names(query):
        content = eve.get(f"/ui/a/acme/t/people/{query}").content.decode()
        return re.findall(r">(Name|Age|Zeal)</bdi>", content)

    assert names("entity/?pk=se&rk=2") == names("entity/?pk=se&rk=1") == ["Name", "Age", "Zeal"]


def test_next(opened, add_entity):
    client, page = opened(Name="Ada")
    add_entity("se", "eva", Name="Eva")
    assert client.get(address(go="next"))["Location"] == address(row_key="eva")
    last = client.get(address(row_key="eva", go="next"))
    assert last["Location"] == address(row_key="eva")
    assert b"the last entity in the table" in client.get(last["Location"]).content
    answer = client.post(address(), fields_of(page, action="save_next"))
    assert answer["Location"] == address(go="next")


def test_without_script_a_row_is_added(opened):
    client, page = opened(Name="Ada")
    answer = client.post(address(), fields_of(page, action="add"))
    assert answer.status_code == 200
    assert [row.is_new for row in answer.context["draft"].rows] == [False, True]


def test_a_part_for_a_drawer(opened):
    client, _ = opened(Name="Ada")
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    part = client.get(address(), headers=headers)
    assert b"<html" not in part.content
    assert b"data-drawer-close" in part.content
    invalid = client.post(address(), {**fields_of(part), "value-0": "x" * 40_000}, headers=headers)
    assert invalid.status_code == 422
    assert b"<html" not in invalid.content
    # the drawer closes, and the page of the grid stays
    gone = client.post(address(), {"action": "delete", "etag": part.context["etag"]}, headers=headers)
    key = tokens.encode_key(EntityKey("se", "ada"))
    assert gone.status_code == 200 and f'data-done="{key}"' in gone.content.decode()


# bytes


def test_uploads_bytes(opened):
    client, page = opened(Photo=bytes(1000), Small=b"\x01")
    fields = fields_of(page)
    number = number_of(page, "Photo")
    assert f"kept-{number}" in fields
    client.post(address(), {**fields, f"file-{number}": SimpleUploadedFile("x.bin", b"\x00\xff\r\n")})
    assert properties()["Photo"].value == b"\x00\xff\r\n"
    page = client.get(address())
    refused = client.post(
        address(), {**fields_of(page), f"file-{number}": SimpleUploadedFile("x.bin", bytes(65537))}
    )
    assert refused.status_code == 422
    assert properties()["Photo"].value == b"\x00\xff\r\n"


# types


def row(client, page, name, **changes):
    number = number_of(page, name)
    fields = {field: value for field, value in fields_of(page).items() if field.endswith(f"-{number}")}
    fields |= {f"{field}-{number}": value for field, value in changes.items()}
    return client.post(page.context["row_address"], {**fields, "opened": fields_of(page)["opened"]})


def test_a_type_is_changed(opened):
    client, page = opened(Whole=5, Half=1.5, Text="abc", Truth="true")
    for name, type_, text, said in (
        ("Whole", "Edm.String", ">\n5</textarea>", ""),
        ("Half", "Edm.Int32", 'value="1"', "Convert anyway"),
        ("Text", "Edm.Int32", 'value="abc"', "Enter a whole number"),
        ("Truth", "Edm.Boolean", "checked", ""),
    ):
        content = row(client, page, name, type=type_).content.decode()
        assert text in content, name
        assert said in content, name


def test_lossy_conversions_need_a_confirmation(opened):
    client, page = opened(Value=1.5)
    changed = {"type": "Edm.Int32", "value": "1", "lossy": "1"}
    refused = save(client, page, Value=changed)
    assert refused.status_code == 422
    assert "This conversion loses data" in refused.content.decode()
    assert properties()["Value"].value == 1.5
    assert save(client, page, Value={**changed, "accept": "1"}).status_code == 303
    assert properties()["Value"] == EdmValue(Edm.INT32, 1)


def test_a_value_is_checked_while_it_is_typed(opened):
    client, page = opened(Value=1)
    assert "Use Int64" in row(client, page, "Value", value="99999999999").content.decode()
    assert "Use Int64" not in row(client, page, "Value", value="99").content.decode()
    assert client.post(page.context["row_address"], {}).status_code == 404


# JSON


def test_json_is_saved(opened):
    client, _ = opened(**HOSTILE)
    page = client.get(address(tab="json"))
    text = fields_of(page)["text"].replace('"Small": -2147483648', '"Small": 7').replace('"Yes": true,', "")
    answer = client.post(address(), fields_of(page, text=text))
    assert (answer.status_code, answer["Location"]) == (303, address(tab="json"))
    rest = {name: value for name, value in HOSTILE.items() if name != "Yes"}
    assert is_same(properties(), {**rest, "Small": EdmValue(Edm.INT32, 7)})


def test_json_is_refused_with_its_place(opened):
    client, _ = opened(Name="Ada")
    for text, problem in [
        (
            f'{ADA},\n "A@odata.type": "Edm.Int46", "A": "1"}}',
            "Line 2, column 18</a>: Edm.Int46 is not a type",
        ),
        (f'{ADA}, "A": 1, "A": 2}}', "Line 1, column 49</a>: A appears twice."),
        (f'{ADA}, "A": 1,}}', "Line 1, column 48</a>: JSON syntax error"),
        ('{"PartitionKey": "se", "RowKey": "eva"}', "Keys can&#x27;t be changed"),
        ("{}", "PartitionKey is missing"),
    ]:
        answer = client.post(address(), fields_of(client.get(address(tab="json")), text=text))
        assert answer.status_code == 422, (text, problem)
        assert problem in markup.text(answer), (text, problem)
        assert fields_of(answer)["text"].replace("\r\n", "\n") == text, (text, problem)
        assert properties() == {"Name": EdmValue(Edm.STRING, "Ada")}, (text, problem)


# new ones


def test_adds_an_entity(visit, add_entity):
    add_entity("se", "ada", Name="Ada", Age=36)
    client = visit("eve")
    page = client.get(f"{PEOPLE}entity/new/")
    assert [(row.name, row.type, row.is_set) for row in page.context["draft"].rows] == [
        ("Name", Edm.STRING, False),
        ("Age", Edm.INT32, False),
    ]
    question = client.post(f"{PEOPLE}entity/new/", fields_of(page, pk="se", rk="", **{"value-1": "7"}))
    assert question.status_code == 422 and "RowKey is empty" in question.content.decode()
    assert stored("se", "") is None
    answer = client.post(f"{PEOPLE}entity/new/", fields_of(question))
    assert (answer.status_code, answer["Location"]) == (303, address(row_key=""))
    assert properties("se", "") == {"Age": EdmValue(Edm.INT32, 7)}
    again = client.post(f"{PEOPLE}entity/new/", fields_of(page, pk="se", rk="", blank="RowKey"))
    assert again.status_code == 422
    assert "An entity with these keys already exists." in again.content.decode()


def test_duplicates(visit, add_entity):
    add_entity("se", "ada", **HOSTILE)
    client = visit("eve")
    page = client.get(f"{PEOPLE}entity/new/?from={tokens.encode_key(EntityKey('se', 'ada'))}")
    answer = client.post(f"{PEOPLE}entity/new/", fields_of(page, rk="eva", action="save_another"))
    assert answer.status_code == 303
    assert answer["Location"].endswith(f"?from={tokens.encode_key(EntityKey('se', 'eva'))}")
    assert stored("se", "eva").content == stored().content


def test_refuses_a_key(visit, table):
    client = visit("eve")
    page = client.get(f"{PEOPLE}entity/new/")
    for key in ("a/b", "x" * 1025):
        answer = client.post(f"{PEOPLE}entity/new/", fields_of(page, pk="se", rk=key))
        assert answer.status_code == 422, key
        assert 'id="rk-error"' in answer.content.decode(), key


# another key


def test_changes_a_key(opened, add_entity):
    client, _ = opened(**HOSTILE)
    add_entity("se", "taken", Name="Eva")
    before = stored()
    page = client.get(address(page="entity/key/"))
    assert b"one transaction" in page.content
    fields = {"etag": page.context["etag"], "pk": "se", "rk": "taken"}
    assert "already" in client.post(address(page="entity/key/"), fields).content.decode()
    same = client.post(address(page="entity/key/"), {**fields, "rk": "ada"})
    assert "differs from the current one" in same.content.decode()
    assert client.post(address(page="entity/key/"), {**fields, "rk": "a/b"}).status_code == 422
    assert stored() == before
    answer = client.post(address(page="entity/key/"), {**fields, "pk": "", "rk": "eva"})
    assert (answer.status_code, answer["Location"]) == (303, address("", "eva"))
    assert properties() is None
    assert stored("", "eva").content == before.content


# conflicts


def by_others(**values):
    """Save the entity as another user."""
    entity = Entity(
        EntityKey("se", "ada"), {name: EdmValue(Edm.STRING, text) for name, text in values.items()}
    )
    edits.apply(table(), [Update(entity, ANY, merge=True)], by=SERVER)


def test_merges_changes_without_conflicts(opened):
    client, page = opened(A="1", B="1", C="1")
    by_others(A="2", D="2")
    conflict = save(client, page, B="3", C=None)
    assert conflict.status_code == 412
    assert {(line.name, line.by) for line in conflict.context["lines"]} == {
        ("A", "theirs"), ("B", "mine"), ("C", "mine"), ("D", "theirs"),
    }  # fmt: skip
    answer = client.post(address(), fields_of(conflict, action="merged"))
    assert answer.status_code == 303
    assert {name: value.value for name, value in properties().items()} == {"A": "2", "B": "3", "D": "2"}


@pytest.mark.parametrize(("choice", "value"), [("mine", "3"), ("theirs", "2")])
def test_asks_where_they_collide(opened, choice, value):
    client, page = opened(A="1", B="1")
    by_others(A="2")
    conflict = save(client, page, A="3", B="3")
    [line] = [line for line in conflict.context["lines"] if line.by == "conflict"]
    fields = fields_of(conflict, action="merged")
    refused = client.post(address(), fields)
    assert refused.status_code == 422
    assert "Choose a version." in refused.content.decode()
    answer = client.post(address(), {**fields, f"choice-{line.number}": choice})
    assert answer.status_code == 303
    assert (properties()["A"].value, properties()["B"].value) == (value, "3")


def test_a_conflict_with_a_deletion_offers_to_insert(opened):
    client, page = opened(**HOSTILE)
    edits.apply(table(), [Delete(EntityKey("se", "ada"), ANY)], by=SERVER)
    conflict = save(client, page, Small="7")
    assert conflict.status_code == 412
    text = conflict.content.decode()
    assert "<bdi>Server</bdi> deleted this entity at" in text
    assert "Insert again" in text and "Copy as JSON" in text and "&quot;Small&quot;: 7" in text
    answer = client.post(address(), fields_of(conflict, action="insert"))
    assert answer.status_code == 303
    assert is_same(properties(), {**HOSTILE, "Small": EdmValue(Edm.INT32, 7)})


def test_keeps_theirs_discards_and_saves_mine_as_new(opened):
    client, page = opened(A="1")
    by_others(A="2")
    conflict = save(client, page, A="3")
    fields = fields_of(conflict)
    assert client.post(address(), {**fields, "action": "theirs"})["Location"] == address()
    assert client.post(address(), {**fields, "action": "discard"})["Location"] == PEOPLE
    assert properties()["A"].value == "2"
    draft = client.post(f"{PEOPLE}entity/new/", {**fields, "action": "draft_mine"})
    client.post(f"{PEOPLE}entity/new/", fields_of(draft, rk="eva", action="save"))
    assert properties("se", "eva")["A"].value == "3"


def test_a_conflict_within_the_wider_limits_of_a_cosmos_account(account, visit):
    account.kind = AccountKind.COSMOS
    account.save()
    tables.create(account, "people")
    values = {f"P{number:03}": EdmValue(Edm.INT32, number) for number in range(300)}
    first_day = EdmValue(Edm.DATETIME, FIRST_COSMOS_TICK)  # the default value of .NET
    entity = Entity(EntityKey("se", "ada"), {**values, "Since": first_day}, AccountKind.COSMOS)
    edits.apply(table(), [Insert(entity)], by=SERVER)
    client = visit("eve")
    page = client.get(address())
    by_others(B="2")

    conflict = save(client, page, P001="7")
    assert conflict.status_code == 412
    draft = client.post(f"{PEOPLE}entity/new/", {**fields_of(conflict), "action": "draft_mine"})
    assert client.post(f"{PEOPLE}entity/new/", fields_of(draft, rk="eva", action="save")).status_code == 303
    assert client.post(address(), fields_of(conflict, action="merged")).status_code == 303
    changed = {**values, "P001": EdmValue(Edm.INT32, 7), "Since": first_day}
    assert is_same(properties("se", "eva"), changed)
    assert is_same(properties(), {**changed, "B": EdmValue(Edm.STRING, "2")})


def test_values_within_the_wider_limits_of_a_cosmos_account(account, visit):
    account.kind = AccountKind.COSMOS
    account.save()
    tables.create(account, "people")
    long = "x" * 40_000  # 80,000 bytes in UTF-16
    client = visit("eve")
    page = client.get(f"{PEOPLE}entity/new/")
    rows = new_row("Since", "Edm.DateTime", "0001-01-01T00:00:00Z") | new_row("Long", "Edm.String", long, 901)
    client.post(f"{PEOPLE}entity/new/", fields_of(page, pk="se", rk="ada", action="save", **rows))
    values = {"Since": EdmValue(Edm.DATETIME, FIRST_COSMOS_TICK), "Long": EdmValue(Edm.STRING, long)}
    assert is_same(properties(), values)

    json = client.get(address(tab="json"))
    text = json.context["draft"].text.replace("0001-01-01", "1500-02-03")
    refused = client.post(address(), fields_of(json, text=text.replace(long, "x" * (2 * 1024 * 1024 + 1))))
    assert "Long is larger than 2 MiB, the limit for a value." in refused.content.decode()
    refused = client.post(address(), fields_of(json, text=text.replace("1500-02-03", "0000-02-03")))
    assert "A DateTime must be between the years 1 and 9999." in refused.content.decode()
    assert client.post(address(), fields_of(json, text=text)).status_code == 303
    assert properties()["Since"].value == read_datetime("1500-02-03T00:00:00Z", FIRST_COSMOS_TICK)


def test_changed_once_more(opened, visit):
    client, page = opened(A="1", B="1")
    save(visit("alice"), page, A="2")
    conflict = save(client, page, B="3")
    assert "Changed by <bdi>alice</bdi> at" in conflict.content.decode()
    by_others(B="4")
    again = client.post(address(), fields_of(conflict, action="merged"))
    assert again.status_code == 412
    assert "changed again" in again.content.decode()
    assert properties()["B"].value == "4"


def test_an_expired_form_loses_nothing(opened):
    """This happens after a restart of a server without a configured secret."""
    client, page = opened(A="1", B="1")
    fields = fields_of(page, opened="unreadable", **{f"value-{number_of(page, 'A')}": "2"})
    assert client.post(address(), fields).status_code == 303
    assert properties()["A"].value == "2"
    by_others(B="2")
    conflict = client.post(address(), {**fields, f"value-{number_of(page, 'A')}": "3"})
    assert conflict.status_code == 412
    assert {line.name for line in conflict.context["lines"] if line.by == "conflict"} == {"A", "B"}
    assert properties()["A"].value == "2"


# gone


def test_a_deleted_entity_can_be_restored(opened):
    client, page = opened(**HOSTILE)
    before = stored()
    client.post(address(), {"action": "delete", "etag": page.context["etag"]})
    gone = client.get(address())
    assert gone.status_code == 404
    assert "<bdi>eve</bdi> deleted this entity at" in gone.content.decode()
    undo = gone.context["undo"].pk
    client.post(f"/ui/undo/{undo}/", {"next": address()})
    assert stored().content == before.content


def test_an_entity_deleted_by_a_client_can_be_restored(opened):
    client, _ = opened(**HOSTILE)
    by = Actor(ActorKind.KEY, "key1", "127.0.0.1")
    run(
        sql.change(
            relation_name(table().pk), Delete(EntityKey("se", "ada"), ANY), recorder(table().account, by)
        )
    )
    gone = client.get(address())
    assert gone.status_code == 404 and "<bdi>key1</bdi> deleted this entity at" in gone.content.decode()
    form = re.search(
        r'<form method="post" action="([^"]*history[^"]*)">(.*?)</form>', gone.content.decode(), re.DOTALL
    )
    assert '<button class="button primary">' in form[2]
    fields = dict(re.findall(r'name="(v|etag|to)" value="([^"]*)"', form[2]))
    answer = client.post(unescape(form[1]), fields)
    assert answer["Location"] == address()
    assert is_same(properties(), HOSTILE)
