"""Entities as files, and what the record keeps of them."""

import csv
import io
import json
import math

import pytest

from console.grid import formats
from console.grid.tokens import encode_key
from console.grid.views import exports
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.filters.query import EntityQuery
from storage.domain.values import edm
from storage.domain.values.edm import Edm, EdmValue
from storage.models import Activity
from storage.operations import entities, tables

PEOPLE = "/ui/a/acme/t/people/export/"
EVERY = {
    "Text": EdmValue(Edm.STRING, 'a,"b"\r\n;\t=1+1 é 🦊'),
    "Empty": EdmValue(Edm.STRING, ""),
    "Odd": EdmValue(Edm.STRING, "\0\ud800 \u2028"),
    "Small": EdmValue(Edm.INT32, -5),
    "Large": EdmValue(Edm.INT64, 2**63 - 1),
    "Minus": EdmValue(Edm.DOUBLE, -0.0),
    "Whole": EdmValue(Edm.DOUBLE, 5.0),
    "None": EdmValue(Edm.DOUBLE, math.inf),
    "True": EdmValue(Edm.BOOLEAN, True),
    "Since": EdmValue(Edm.DATETIME, 17_424_217_151_234_567),
    "Id": EdmValue(Edm.GUID, "c9da6455-213d-42c9-9a79-3e9149a57833"),
    "Photo": EdmValue(Edm.BINARY, b"\x00\xff"),
    "Long": EdmValue(Edm.STRING, "x" * 32_000),
}


@pytest.fixture
def full(people, account):
    people("a", "1", **EVERY)
    people("a", "2", Text="alone")
    people("b'", "", Text=7)
    return tables.get(account.pk, "people")


def exported(client, **fields):
    answer = client.post(PEOPLE, {"scope": "table", **fields})
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode(errors="surrogatepass"), answer


def stored(table):
    (page,) = entities.all_pages(table, EntityQuery())
    return {one.key: read_stored(one).properties for one in page}


def read_typed(text):
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head[:3] == ["PartitionKey", "RowKey", "Timestamp"]
    found = {}
    for row in rows:
        values = dict(zip(head, row, strict=True))
        names = [name for name in head[3:] if not name.endswith("@type") and values[f"{name}@type"]]
        found[EntityKey(*row[:2])] = {name: read(values[name], values[f"{name}@type"]) for name in names}
    return found


def read(text, type_):
    json_ = {"Boolean": lambda: text == "true", "Int32": lambda: int(text)}.get(type_, lambda: text)()
    return edm.read(json_, f"Edm.{type_}")


def read_documents(documents):
    found = {}
    for document in documents:
        key = EntityKey(document.pop("PartitionKey"), document.pop("RowKey"))
        edm.read(document.pop("Timestamp"), "Edm.DateTime")
        names = [name for name in document if "@" not in name]
        found[key] = {name: edm.read(document[name], document.get(f"{name}@odata.type")) for name in names}
    return found


def test_typed_csv_is_the_data(visit, full):
    text, answer = exported(visit("victor"), format="typed.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="people.typed.csv"'
    assert text.splitlines()[0].startswith("PartitionKey,RowKey,Timestamp,Text,Text@type,Empty,Empty@type")
    assert read_typed(text) == stored(full)


def test_csv_has_no_types(visit, full):
    text, _ = exported(visit("victor"), format="csv", cols="Small,*")
    head, first, *_ = csv.reader(io.StringIO(text, newline=""))
    assert head[:5] == ["PartitionKey", "RowKey", "Timestamp", "Small", "Text"]
    assert not any("@" in name for name in head)
    assert first[head.index("Large")] == "9223372036854775807"


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_json_is_the_data(visit, full, form):
    text, answer = exported(visit("victor"), format=form)
    documents = json.loads(text) if form == "json" else [json.loads(line) for line in text.splitlines()]
    assert answer["Content-Type"] == formats.TYPES[formats.ExportFormat(form)]
    assert read_documents(documents) == stored(full)


@pytest.mark.parametrize("form", list(formats.ExportFormat))
def test_an_empty_table(visit, people, form):
    text, _ = exported(visit("victor"), format=form)
    assert text.strip() in ("", "[]", "PartitionKey,RowKey,Timestamp")


def test_what_a_query_finds(visit, full):
    text, _ = exported(visit("victor"), format="ndjson", scope="query", f="PartitionKey eq 'b'''")
    assert [json.loads(line)["Text"] for line in text.splitlines()] == [7]


def test_what_is_ticked(visit, full):
    keys = [encode_key(EntityKey(*key)) for key in (("a", "2"), ("b'", ""), ("gone", "x"))]
    text, _ = exported(visit("victor"), format="csv", scope="rows", key=[*keys, "nonsense"])
    assert [row[:2] + row[3:] for row in csv.reader(io.StringIO(text))] == [
        ["PartitionKey", "RowKey", "Text"], ["a", "2", "alone"], ["b'", "", "7"],
    ]  # fmt: skip


def test_many_pages(visit, people, monkeypatch):
    for number in range(30):
        people("p", f"{number:02}", Number=number, **({"Rare": 1} if number == 29 else {}))
    pages = []

    def all_pages(table, wanted):
        for start in range(0, 30, 7):
            pages.append(start)
            (page,) = found(table, wanted)
            yield page[start : start + 7]

    found = entities.all_pages
    monkeypatch.setattr(entities, "all_pages", all_pages)
    text, _ = exported(visit("victor"), format="typed.csv")
    assert [row[0] for row in list(csv.reader(io.StringIO(text)))[1:]] == ["p"] * 30
    assert "Rare@type" in text.splitlines()[0]


def test_a_property_that_turns_up_later_is_not_left_out(visit, people, monkeypatch):
    people("p", "1", Name="x")
    monkeypatch.setattr(exports, "_names", lambda wanted: [])
    answer = visit("victor").post(PEOPLE, {"scope": "table", "format": "csv"})
    with pytest.raises(formats.UnexpectedProperty):
        b"".join(answer.streaming_content)
    assert Activity.objects.get(verb="entity.export").detail["is_whole"] is False


def test_the_record_keeps_it(visit, full):
    exported(visit("victor"), format="ndjson", scope="query", f="Text eq 'alone'")
    done = Activity.objects.get(verb="entity.export")
    assert (done.verb, done.actor, done.table_name) == ("entity.export", "victor", "people")
    assert done.detail == {
        "scope": "query", "format": "ndjson", "filter": "Text eq 'alone'", "rows": 1, "is_whole": True,
    }  # fmt: skip


def test_names_scope_and_count_on_the_button(visit, full):
    page = visit("victor").get(PEOPLE, {"f": "PartitionKey eq 'a'"}).content.decode()
    assert "Export query results (2)" in page
    assert "Export the whole table (3)" in page


@pytest.mark.parametrize("fields", [{"format": "xml"}, {"format": "csv", "scope": "query", "f": "Age eq"}])
def test_refusals(visit, full, fields):
    assert visit("victor").post(PEOPLE, {"scope": "table", **fields}).status_code == 422
    assert not Activity.objects.filter(verb="entity.export").exists()


def test_back_leads_into_the_console_only(visit, full):
    for address in ("https://evil.example/", "//evil.example", "/acme/people"):
        assert address not in visit("victor").get(PEOPLE, {"next": address}).content.decode()
