"""Entities as files, and what the record keeps of them."""

import csv
import io
import json
import math

import pytest

from console.grid.tokens import encode_key
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.models import Activity
from storage.tables import tables
from storage.tabular.layout import FileRefused
from storage.tabular.writing import TYPES, ExportFormat
from storage.transfer import exports

PEOPLE = "/ui/a/acme/t/people/export/"
EVERY = {
    "Text": 'a,"b"\r\n;\t=1+1 é 🦊',
    "Empty": "",
    "Odd": "\0\ud800 \u2028",
    "Small": -5,
    "Large": EdmValue(Edm.INT64, 2**63 - 1),
    "None": math.inf,
    "Since": EdmValue(Edm.DATETIME, 17_424_217_151_234_567),
    "Photo": b"\x00\xff",
    "Long": "x" * 32_000,
}


@pytest.fixture
def full(add_entity, account):
    add_entity("a", "1", **EVERY)
    add_entity("a", "2", Text="alone")
    add_entity("b'", "", Text=7)
    return tables.get(account, "people")


def exported(client, **fields):
    answer = client.post(PEOPLE, {"scope": "table", **fields})
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode(errors="surrogatepass"), answer


def test_typed_csv_has_types(visit, full):
    text, answer = exported(visit("victor"), format="typed.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="people.typed.csv"'
    assert text.splitlines()[0].startswith("PartitionKey,RowKey,Timestamp,Text,Text@type,Empty,Empty@type")
    assert len(list(csv.reader(io.StringIO(text, newline="")))) == 4


def test_excel_and_parquet_are_offered_and_refuse_before_they_begin(visit, full, add_entity, monkeypatch):
    pytest.importorskip("openpyxl")
    client = visit("victor")
    page = client.get(PEOPLE).content.decode()
    assert 'value="parquet"' in page and 'value="xlsx"' in page and "disabled aria-describedby" not in page
    refused = client.post(PEOPLE, {"scope": "table", "format": "xlsx"})
    assert refused.status_code == 422
    assert "Odd has a text with a character that a cell of Excel cannot hold." in refused.content.decode()
    add_entity("c", "1", Text="=1")
    answer = client.post(PEOPLE, {"scope": "rows", "format": "xlsx", "key": encode_key(EntityKey("c", "1"))})
    assert answer["Content-Disposition"] == 'attachment; filename="people.xlsx"'
    assert b"".join(answer.streaming_content).startswith(b"PK")

    monkeypatch.setitem(exports.LIBRARIES, "xlsx", ("no_such_module", exports.LIBRARIES["xlsx"][1]))
    page = client.get(PEOPLE).content.decode()
    assert "pip install &#x27;tablero-server[excel]&#x27;" in page and "disabled aria-describedby" in page
    refused = client.post(PEOPLE, {"scope": "table", "format": "xlsx"})
    assert (refused.status_code, "install the extra excel" in refused.content.decode()) == (422, True)


def test_every_format_of_a_full_and_an_empty_table(visit, full, account):
    client = visit("victor")
    for form in ExportFormat:
        text, answer = exported(client, format=form)
        assert answer["Content-Type"] == TYPES[form], form
        assert "9223372036854775807" in text, form
    assert client.post(PEOPLE, {"format": form, "scope": "query", "f": "Age eq"}).status_code == 422
    tables.delete(account, "people")
    tables.create(account, "people")
    for form in ExportFormat:
        text, _ = exported(client, format=form)
        assert text.strip() in ("", "[]", "PartitionKey,RowKey,Timestamp"), form


def test_csv_has_no_types(visit, full):
    text, _ = exported(visit("victor"), format="csv", cols="Small,*")
    head, first, *_ = csv.reader(io.StringIO(text, newline=""))
    assert head[:5] == ["PartitionKey", "RowKey", "Timestamp", "Small", "Text"]
    assert not any("@" in name for name in head)
    assert first[head.index("Large")] == "9223372036854775807"


FORMULA = "=cmd|' /C calc'!A0"


def test_formulas_of_others_do_not_run_in_a_spreadsheet(visit, add_entity):
    values = {
        "At": "@SUM(A1)",
        "Tab": "\t=1",
        "Return": "\r=1",
        "Plus": "+90 555",
        "Mail": "a@b",
        "Negative": "-5.5e-3",
    }
    add_entity(FORMULA, "-2+3", **values, Small=-5, Low=-math.inf, Photo=b"\xfb\xef\xbe")
    client = visit("victor")
    for fields, is_escaped in [
        ({"format": "csv"}, True),
        ({"format": "csv", "keep_formulas": "on"}, False),
        ({"format": "typed.csv"}, False),
        ({"format": "typed.csv", "escape_formulas": "on"}, True),
    ]:
        text, _ = exported(client, **fields)
        head, row = csv.reader(io.StringIO(text, newline=""))
        results = dict(zip(head, row, strict=True))
        mark = "'" if is_escaped else ""
        assert (results["PartitionKey"], results["RowKey"]) == (mark + FORMULA, mark + "-2+3"), fields
        assert [results[name] for name in ("At", "Tab", "Return", "Plus")] == [
            mark + values[name] for name in ("At", "Tab", "Return", "Plus")
        ], (fields, is_escaped)
        # texts other than formulas, and numbers, typed or not
        assert (results["Mail"], results["Negative"], results["Small"]) == ("a@b", "-5.5e-3", "-5"), fields
        assert results["Low"] == "-Infinity" and results["Photo"] == mark + "++++", (fields, is_escaped)


def test_the_results_of_a_query_are_exported(visit, full):
    text, _ = exported(visit("victor"), format="ndjson", scope="query", f="PartitionKey eq 'b'''")
    assert [json.loads(line)["Text"] for line in text.splitlines()] == [7]


def test_selected_rows_are_exported(visit, full):
    keys = [encode_key(EntityKey(*key)) for key in (("a", "2"), ("b'", ""), ("gone", "x"))]
    text, _ = exported(visit("victor"), format="csv", scope="rows", key=[*keys, "nonsense"])
    assert [row[:2] + row[3:] for row in csv.reader(io.StringIO(text))] == [
        ["PartitionKey", "RowKey", "Text"], ["a", "2", "alone"], ["b'", "", "7"],
    ]  # fmt: skip


def test_a_property_that_turns_up_later_is_not_left_out(visit, add_entity, monkeypatch):
    add_entity("p", "1", Name="x")
    monkeypatch.setattr(exports, "property_names", lambda query: [])
    answer = visit("victor").post(PEOPLE, {"scope": "table", "format": "csv"})
    with pytest.raises(FileRefused, match="Export again"):
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
