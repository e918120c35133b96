"""Input that our pages never send, and data that only clients of the service store: refused or shown without
failure.
"""

import json

import pytest

from console.grid.tokens import encode_key
from console.models import User
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import write_etag
from storage.entities import entities
from storage.tables import tables

TABLE = "/ui/a/acme/t/people/"
ADA = EntityKey("se", "ada")
HTMX = {"HX-Request": "true"}
DIGITS = "9" * 5000  # more than Python makes a number of
HALF = "\ud800"  # half of a surrogate pair


@pytest.fixture
def ada(add_entity):
    texts = {
        "Half": f"{HALF}%41",
        "Json": '{"a\\ud800": ["\\ud800", 1.10, 1e400]}',
        "Broken": f'{{"a": "{HALF}"}}',
        "Name": "Ada",
    }
    add_entity(*ADA, **texts, End=EdmValue(Edm.DATETIME, 253402300799_9999999))


def test_values_that_no_page_can_hold_are_shown(visit, ada):
    client = visit("victor")
    for name in ["Half", "Json", "Broken", "End"]:
        address = {"key": encode_key(ADA), "property": name}
        for more in (
            {},
            {"download": "1"},
            *({"as": viewer} for viewer in ("plain", "json", "url", "time", "hex")),
        ):
            assert client.get(f"{TABLE}value/", {**address, **more}, headers=HTMX).status_code == 200, name


def test_every_view_of_a_table_bears_them(visit, ada):
    client = visit("victor")
    for view in ["grid", "json", "form"]:
        answer = client.get(TABLE, {"view": view})
        assert answer.status_code == 200, view
        if view == "json":  # laid out with every token as it is written
            assert "1.10" in answer.content.decode() and "1e400" in answer.content.decode(), view


def test_malformed_queries_do_not_fail(visit, ada):
    client = visit("victor")
    for query in [
        {
            "top": DIGITS,
            "refresh": DIGITS,
            "cols": f"Name:{DIGITS}",
            "after": "WyJhIiwiYiIsMWUzMDhd",
            "open": "\0",
        },
        {"f": "Name eq 'a\0b'"},
        {"f": "PartitionKey eq '\0'"},
        {"f": "this is none"},
    ]:
        assert client.get(TABLE, query).status_code in {200, 302, 422}, query
        assert client.get(f"{TABLE}count/", query, headers=HTMX).status_code == 200, query
        assert client.get(f"{TABLE}export/", query).status_code in {200, 422}, query


def test_texts_of_values_that_are_none(visit, ada, account):
    client = visit("eve")
    for type_, form, text in [
        ("Edm.String", "escaped", DIGITS),
        ("Edm.Int64", "", DIGITS),
        ("Edm.Double", "", "1e-99999999999999999999"),
        ("Edm.DateTime", "", "9999-12-31T23:59:59-14:00"),
        ("Edm.DateTime", "", f"-{DIGITS}h"),
    ]:
        stored = entities.get(tables.get(account, "people"), ADA)
        sent = {"key": encode_key(ADA), "property": "Name", "type": type_, "form": form, "value": text}
        assert client.post(f"{TABLE}cell/check/", sent).status_code == 200, (type_, form)
        sent |= {"index": DIGITS, "etag": write_etag(stored.timestamp)}
        assert client.post(f"{TABLE}cell/", sent, headers=HTMX).status_code in {200, 422}, (type_, form)
        row = {"name-0": "Name", "type-0": type_, "form-0": form, "value-0": text, "was-0": "Edm.String"}
        assert client.post(f"{TABLE}entity/row/", row).status_code == 200, (type_, form)


def test_an_entity_is_saved_only_as_it_was_opened(visit, ada, account):
    User.objects.update(time_zone="Asia/Tokyo")
    client = visit("eve")
    for etag in ["", "*", 'W/"x"', "W/\"datetime'9999-12-31T23:59:59.9999999Z'\""]:
        sent = {"etag": etag, "name-0": "Name", "type-0": "Edm.String", "value-0": "mine", "kept-0": "1"}
        answer = client.post(f"{TABLE}entity/?pk=se&rk=ada", sent)
        assert answer.status_code in {404, 412}, etag
        result = entities.get(tables.get(account, "people"), ADA)
        assert b"mine" not in result.content, etag


def test_nothing_to_paste(visit, ada):
    client = visit("eve")
    for text in [",", "\t", "\n;\n", '"', "[", "{}", f"[{DIGITS}]"]:
        assert client.post(f"{TABLE}paste/", {"text": text}).status_code == 422, text


def test_bytes_that_are_kept_where_there_are_none(visit, ada):
    row = {"name-0": "Name", "type-0": "Edm.Binary", "kept-0": "1", "value-0": ""}
    eve = visit("eve")
    assert eve.post(f"{TABLE}entity/row/", row).status_code == 200
    draft = {"pk": "a", "rk": "b", "action": "add", **row}
    assert eve.post(f"{TABLE}entity/new/", draft).status_code == 200
    answer = eve.post(f"{TABLE}entity/new/", {**draft, "action": "save"})
    assert answer.status_code == 422
    assert "The binary data is no longer available" in answer.content.decode()


def test_a_layout_of_no_name(visit, ada):
    sent = {"name": "a\0b", "tables": "p\0*", "cols": "Name"}
    victor = visit("victor")
    assert victor.post(f"{TABLE}layouts/", sent).status_code == 302
    assert victor.get(TABLE, follow=True).status_code == 200


def test_an_invalid_address_in_a_header(visit, ada, account):
    broken = "http://["
    client = visit("alice")
    asked = client.post("/ui/a/acme/keys/1/reveal/", headers={"Referer": broken})
    assert asked["Location"].startswith("/ui/me/again/")


def test_copies_have_a_size_limit(visit, add_entity, monkeypatch):
    monkeypatch.setattr("console.grid.views.copies.SIZE_LIMIT", 1000)
    for number in range(60):
        add_entity("se", str(number), Name="x" * 100)
    client = visit("victor")
    keys = [encode_key(EntityKey("se", str(number))) for number in range(60)]
    assert client.post(f"{TABLE}copy/", {"scope": "table", "as": "json"}).status_code == 422
    assert client.post(f"{TABLE}copy/", {"scope": "rows", "key": keys, "as": "json"}).status_code == 422
    assert client.post(f"{TABLE}copy/", {"scope": "rows", "key": keys[:3], "as": "json"}).json()["count"] == 3
    answer = client.post(f"{TABLE}export/", {"scope": "rows", "key": keys, "format": "ndjson"})
    assert b"".join(answer.streaming_content).count(b"\n") == 60


def test_days_at_the_ends_of_the_calendar(visit, ada):
    client = visit("ada")
    for zone, day in (("Asia/Tokyo", "0001-01-01"), ("America/Los_Angeles", "9999-12-31"), ("UTC", "-1")):
        User.objects.update(time_zone=zone)
        for path in ("/ui/a/acme/activity/", "/ui/activity/"):
            assert client.get(path, {"since": day, "until": day}).status_code == 200, (zone, day, path)


def test_staged_cells_and_keys_want_the_entity_as_it_was_shown(visit, ada, account):
    client = visit("eve")
    staged = {
        "key": encode_key(ADA),
        "property": "Name",
        "type": "Edm.String",
        "form": "plain",
        "text": "mine",
    }
    for etag in ["", "*", "x", 1, None, []]:
        for more in ({}, {"removed": "1"}):
            sent = {"changes": json.dumps([{**staged, **more, "etag": etag}]), "apply": "1"}
            assert client.post(f"{TABLE}staged/", sent).status_code == 400, etag
        for action in ("save", "remove"):
            sent = {**staged, "value": "mine", "etag": etag or "", "action": action}
            assert client.post(f"{TABLE}cell/", sent).status_code in {412, 422}, etag
        sent = {"pk": "se", "rk": "other", "etag": etag or ""}
        assert client.post(f"{TABLE}entity/key/?pk=se&rk=ada", sent).status_code == 422, etag
        result = entities.get(tables.get(account, "people"), ADA)
        assert b"mine" not in result.content and b'"Name"' in result.content, etag


def test_names_that_nothing_has(visit, ada):
    client = visit("ada")
    for name in ["%00", "%ED%A0%80", "%2e%2e"]:
        for path in (f"{name}/", f"{name}/t/people/", f"acme/t/{name}/", f"acme/t/{name}/entity/?pk=a&rk=b"):
            assert client.get(f"/ui/a/{path}").status_code == 404, name


def test_text_that_the_database_cannot_store_is_refused(visit, account, caplog):
    """Whatever part of a request it is in: here the cookie of a session, which everybody can send."""
    client = visit(None)
    client.raise_request_exception = False
    answer = client.get("/ui/a/acme/", headers={"Cookie": rf'tablero_session="\000{"a" * 31}"'})
    assert answer.status_code == 400
    assert "Traceback" not in caplog.text
