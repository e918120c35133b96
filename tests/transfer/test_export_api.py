"""Exports over the API: a stream in each format, and who may have it."""

import csv
import io
import json

import pytest

from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import edits
from storage.models import Activity
from storage.runtime import job_runner

PATH = "accounts/acme/tables/people/export"


@pytest.fixture
def two(table):
    for key, text in (("1", "=1+1"), ("2", "\ud800")):
        entity = Entity(EntityKey("se", key), {"Text": EdmValue(Edm.STRING, text)})
        edits.apply_one(table, Insert(entity), by=SERVER)


def content(answer):
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)


def test_streams_what_a_filter_finds_and_records_it(call, two):
    victor = call("victor", "read")
    answer = victor("GET", f"{PATH}?filter=RowKey eq '2'")
    assert answer["Content-Type"] == "application/x-ndjson"
    assert answer["Content-Disposition"] == 'attachment; filename="people.ndjson"'
    assert json.loads(content(answer))["Text"] == "\ud800"
    done = Activity.objects.get(verb="entity.export")
    assert (done.actor, done.detail["rows"], done.detail["scope"]) == ("victor", 1, "query")

    answer = victor("GET", f"{PATH}?format=typed.csv&escape_formulas=true")
    rows = list(csv.DictReader(io.StringIO(content(answer).decode(errors="surrogatepass"))))
    assert [(row["Text"], row["Text@type"]) for row in rows] == [("'=1+1", "String"), ("\ud800", "String")]


def test_excel_holds_keys_and_texts_like_formulas(call, two):
    openpyxl = pytest.importorskip("openpyxl")
    answer = call("victor", "read")("GET", f"{PATH}?format=xlsx&filter=RowKey eq '1'")
    assert answer["Content-Disposition"] == 'attachment; filename="people.xlsx"'
    sheet = openpyxl.load_workbook(io.BytesIO(content(answer))).active
    head, row = sheet.iter_rows()
    assert [it.value for it in head] == ["PartitionKey", "RowKey", "Timestamp", "Text"]
    assert [(it.value, it.data_type) for it in (row[0], row[1], row[3])] == [
        ("se", "s"), ("1", "s"), ("=1+1", "s"),
    ]  # fmt: skip
    done = Activity.objects.get(verb="entity.export")
    assert (done.detail["format"], done.detail["rows"], done.detail["is_whole"]) == ("xlsx", 1, True)


def test_refuses(call, two):
    victor = call("victor", "read")
    assert victor("GET", f"{PATH}?format=xls").status_code == 400
    pytest.importorskip("openpyxl")
    refused = victor("GET", f"{PATH}?format=xlsx")
    assert (refused.status_code, "Text has a text with a character" in refused.content.decode()) == (
        409,
        True,
    )
    pytest.importorskip("pyarrow")
    refused = victor("GET", f"{PATH}?format=parquet")
    assert (refused.status_code, "half of a surrogate pair" in refused.content.decode()) == (409, True)
    assert victor("GET", f"{PATH}?filter=RowKey eq").status_code == 400
    assert victor("GET", PATH.replace("people", "gone")).status_code == 404
    assert call("sam", "read")("GET", PATH).status_code == 404


@pytest.mark.django_db(transaction=True)  # a job saves its steps when they are committed
def test_a_job_makes_a_file_to_download_in_parts(call, two):
    victor = call("victor", "read")
    begun = victor("POST", PATH, {"filter": "RowKey eq '1'"}, Prefer="respond-async")
    assert (begun.status_code, begun.json()["files"]) == (202, [])
    job = victor("POST", PATH, {"format": "csv", "escape_formulas": True}).json()
    zipped = victor("POST", "accounts/acme/export", {"format": "csv", "tables": ["people"]}).json()
    job_runner.run_all()
    [file] = victor("GET", f"jobs/{job['id']}").json()["files"]
    address = f"jobs/{job['id']}/files/{file['id']}"
    whole = content(victor("GET", address))
    part = victor("GET", address, Range="bytes=5-")
    assert (part.status_code, b"".join(part.streaming_content)) == (206, whole[5:])
    assert b"'=1+1" in whole

    zipped = victor("GET", f"jobs/{zipped['id']}").json()
    assert ([it["name"] for it in zipped["files"]], zipped["unit"]) == (["acme.zip"], "entities")
    fields = {"format": "csv", "tables": ["gone"]}
    assert victor("POST", "accounts/acme/export", fields).status_code == 404
    assert call("max")("POST", "accounts/acme/export", {"tables": ["people"]}).status_code == 400
    refused = victor("POST", PATH, {"filter": "RowKey = 'a'"})
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith("Position 8: Filters have operators of their own")
