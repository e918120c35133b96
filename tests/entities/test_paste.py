"""Pasting rows: a preview shows their effect, and then all are written together."""

import json
import re

import pytest

from console.grid.tokens import encode_key
from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.editing import typed_text
from storage.entities import edits, entities
from storage.models import Activity
from storage.tables import tables
from tests.console import markup

PASTE = "/ui/a/acme/t/people/paste/"
ROWS = "PartitionKey\tRowKey\tName\tAge\nse\tada\tAda\t37\nse\talan\tAlan\t41\n"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def ada(add_entity):
    add_entity("se", "ada", Name="Ada", Age=36, Kept=True)


def properties(account, row_key):
    result = entities.get(tables.get(account, "people"), EntityKey("se", row_key))
    return None if result is None else read_stored(result).properties


def test_the_address_of_the_page_that_was_leads_to_the_import(visit, ada):
    assert visit("eve").get(PASTE)["Location"] == "/ui/a/acme/t/people/import/"
    assert 'id="paste"' in visit("eve").get(PASTE, headers=HTMX).content.decode()  # the dialog of the grid


def test_previews_without_writing(visit, ada, account):
    answer = visit("eve").post(PASTE, {"text": ROWS})
    shown = markup.text(answer)
    assert answer.status_code == 200
    assert "1 insert" in shown and "1 update" in shown and "Insert 1, update 1" in shown
    assert 'class="paste-why">inferred from the values</small>' in shown
    assert properties(account, "alan") is None


def test_reports_omitted_columns(visit, account, ada):
    rows = ROWS.replace("\tAge", "\tAge\tTimestamp\todata.etag\t").replace("7\n", "7\tx\tW\ty\n") + "\t\t\t\n"
    shown = markup.text(visit("eve").post(PASTE, {"text": rows}))
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", shown))
    assert "Left out: set by the service: Timestamp" in plain and "1 blank row is skipped" in plain
    assert "Left out: control information of a service: odata.etag" in plain and "column7" in plain
    answer = visit("eve").post(PASTE, {"text": ROWS.replace("Age", "Name")})
    assert answer.status_code == 422 and "Two columns are named Name." in markup.text(answer)
    twice = '{"PartitionKey": "p", "RowKey": "1", "a": 1, "a": 2}'
    assert "The row has a twice." in markup.text(visit("eve").post(PASTE, {"text": twice}))


def applied(client, mode="merge", text=ROWS, **more):
    shown = markup.text(client.post(PASTE, {"text": text, "mode": mode, **more}))
    token = re.search(r'name="apply" value="([^"]+)"', shown)
    assert token, shown
    return client.post(PASTE, {"text": text, "mode": mode, "apply": token[1], **more})


def test_merges_and_inserts_and_undoes_all_of_it(visit, ada, account):
    client = visit("eve")
    answer = applied(client)
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/acme/t/people/")
    assert properties(account, "ada") == {
        "Name": EdmValue(Edm.STRING, "Ada"),
        "Age": EdmValue(Edm.INT32, 37),
        "Kept": EdmValue(Edm.BOOLEAN, True),
    }
    assert "Pasted 2 entities" in client.get(answer["Location"]).content.decode()
    client.post(f"/ui/undo/{Activity.objects.latest('pk').pk}/", {"next": "/ui/"})
    assert properties(account, "ada")["Age"].value == 36
    assert properties(account, "alan") is None


def test_an_inferred_type_follows_the_existing_value(visit, add_entity, account):
    add_entity("se", "a", Mixed=5, Ratio=1.5, Code="007")
    add_entity("se", "b", Mixed="high")
    text = "PartitionKey,RowKey,Mixed,Ratio,Code\nse,a,5,2,007\nse,b,low,,\n"
    shown = applied(visit("eve"), text=text)
    assert shown.status_code == 302
    assert properties(account, "a") == {
        "Mixed": EdmValue(Edm.INT32, 5),
        "Ratio": EdmValue(Edm.DOUBLE, 2.0),
        "Code": EdmValue(Edm.STRING, "007"),
    }
    assert properties(account, "b") == {"Mixed": EdmValue(Edm.STRING, "low")}


def test_replaces(visit, ada, account):
    assert applied(visit("eve"), "replace").status_code == 302
    assert "Kept" not in properties(account, "ada")


def test_insert_only_refuses_existing_rows(visit, ada, account):
    answer = visit("eve").post(PASTE, {"text": ROWS, "mode": "insert"})
    text = answer.content.decode()
    assert answer.status_code == 422 and "1 already exists" in text and 'name="apply"' not in text


def test_rows_changed_since_the_preview_are_not_overwritten(visit, ada, account):
    client = visit("eve")
    shown = markup.text(client.post(PASTE, {"text": ROWS, "mode": "merge"}))
    token = re.search(r'name="apply" value="([^"]+)"', shown)[1]
    table = tables.get(account, "people")
    theirs = Update(Entity(EntityKey("se", "ada"), {"Age": EdmValue(Edm.INT32, 99)}), ANY, merge=True)
    edits.apply_one(table, theirs, by=SERVER)
    answer = client.post(PASTE, {"text": ROWS, "mode": "merge", "apply": token})
    assert answer.status_code == 200 and b"changed since the last preview" in answer.content
    assert properties(account, "ada")["Age"].value == 99 and properties(account, "alan") is None


def test_a_type_can_be_chosen_and_those_of_the_table_are_known(visit, add_entity, account):
    client = visit("eve")
    applied(
        client, text="PartitionKey,RowKey,N,M\nse,x,5,6\n", **{"as:N": "Edm.String", "known:M": "Edm.Int64"}
    )
    assert properties(account, "x") == {"N": EdmValue(Edm.STRING, "5"), "M": EdmValue(Edm.INT64, 6)}


def test_names_each_error_with_its_line_and_column(visit, add_entity):
    text = "PartitionKey,RowKey,Age,Age@type\nse,a,x,Int32\nse/,b,1,Int32\nse,c,1,Edm.Point\n"
    answer = visit("eve").post(PASTE, {"text": text})
    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "3 errors" in shown and "Enter a whole number" in shown
    assert "PartitionKey has a character that keys cannot have" in shown
    assert "The type of Age is not one of the service." in shown and 'name="apply"' not in shown


def test_explains_refused_pastes(visit, ada):
    for text, why in (
        ("", "nothing to paste"),
        ("a,b\n1,2", "must contain the column names"),
        ("[{", "Invalid JSON"),
        ("{", "The row is not JSON."),
        ("PartitionKey,RowKey,Age\nse,ada,36\n", "1 unchanged"),
    ):
        answer = visit("eve").post(PASTE, {"text": text}, headers=HTMX)
        assert answer.status_code == 422 and why in answer.content.decode()
        assert b"<html" not in answer.content


def test_copies_of_the_grid_paste_back_unchanged(visit, add_entity, account):
    exact = {"Big": EdmValue(Edm.INT64, 2**63 - 1), "Since": EdmValue(Edm.DATETIME, 1_504_099_233_4139141)}
    add_entity(
        "se", "a", Text='tab\t"quoted"\nline', Mixed=5, Zero=-0.0, Flag=True, Photo=b"\x00\xff", **exact
    )
    add_entity("se", "b", Text="007", Mixed="high", Zero=1.5)
    client = visit("eve")
    columns = [
        "PartitionKey",
        "RowKey",
        "Text",
        "Mixed",
        "Zero",
        "Flag",
        "Photo",
        "Big",
        "Since",
        "Timestamp",
    ]
    known = {"known:Photo": "Edm.Binary", "known:Text": "Edm.String"}  # as the header of the grid has them
    keys = [encode_key(EntityKey("se", row_key)) for row_key in "ab"]
    for head in ({}, {"head": "1"}):
        sent = {"scope": "rows", "key": keys, "as": "tsv", "column": columns, **head}
        copied = client.post("/ui/a/acme/t/people/copy/", sent).json()["text"]
        text = client.post(PASTE, {"text": copied, "column": columns, **known}).content.decode()
        assert "2 unchanged" in text, text


def test_times_without_a_zone_are_those_of_the_reader(visit, add_entity, account):
    client = visit("eve")
    client.cookies["tablero_zone"] = "Europe/Istanbul"
    rows = "PartitionKey,Row Key,At,a b\nse,x,2026-11-20 14:03,1\n"
    applied(client, text=rows, **{"known:At": "Edm.DateTime"})
    assert typed_text.write(properties(account, "x")["At"]) == "2026-11-20T11:03:00Z"
    assert properties(account, "x")["a_b"] == EdmValue(Edm.INT32, 1)
    shown = markup.text(client.post(PASTE, {"text": rows}))
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", shown))
    assert "Renamed: a b → a_b" in plain and "Used as a key: Row Key → RowKey" in plain


def test_pastes_are_limited_to_a_thousand_rows(visit, add_entity, account):
    rows = [{"PartitionKey": f"p{number % 3}", "RowKey": str(number), "N": number} for number in range(1001)]
    client = visit("eve")
    refused = client.post(PASTE, {"text": json.dumps(rows)})
    assert refused.status_code == 422 and b"this text has 1001" in refused.content
    answer = applied(client, "insert", json.dumps(rows[:1000]))
    assert answer.status_code == 302
    assert Activity.objects.latest("pk").entities == 1000


def test_nothing_pasted_is_markup(visit, add_entity):
    hostile = "<img src=x onerror=alert(1)>"
    for head, row in ((f"Name,{hostile}", f"{hostile},{hostile}"), ("Name", hostile)):
        text = f"PartitionKey,RowKey,{head}\nse,{hostile},{row}\n"
        assert b"<img" not in visit("eve").post(PASTE, {"text": text}).content
