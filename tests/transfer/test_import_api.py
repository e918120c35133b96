"""Imports over the API: what they answer, and that a body is only taken from those who may send one."""

import asyncio
import gzip
import json
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from console import asgi
from storage.accounts import account_settings
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.entities import entities
from storage.jobs import files
from storage.models import Activity, Job, JobFile
from storage.rest import uploads
from storage.runtime import job_runner
from storage.runtime.threads import in_thread
from storage.tabular.mapping import ColumnMapping
from storage.transfer.uploads import UploadTooLarge, require_room

pytestmark = pytest.mark.django_db(transaction=True)  # a job saves its steps when they are committed

PATH = "accounts/acme/tables/people/import"
TEXT = b"country,id,age\nse,1,36\ntr,2,n/a\ntr,2,41\n"
KEYS = "partition_key={country}&row_key={id}"


def count(table):
    return sum(len(page) for page in entities.all_pages(table, EntityQuery()))


def test_a_dry_run_the_import_and_its_rejected_rows(call, table):
    ask = call("eve", "write")
    mapping = json.dumps({"columns": [{"source": "age", "type": "Int32"}]})
    foreseen = ask("POST", f"{PATH}?{KEYS}&mapping={mapping}&dry_run=true&mode=skip", TEXT)
    assert foreseen.status_code == 200, foreseen.content
    foreseen = foreseen.json()
    assert (count(table), foreseen["dry_run"], foreseen["activity"]) == (0, True, None)
    reject = {
        "reason": "not-of-type",
        "detail": "age is not of the type Int32.",
        "column": "age",
        "type": "Int32",
        "rows": 1,
        "lines": [3],
        "values": ["n/a"],
        "repairs": ["string", "unset"],
    }
    assert foreseen["rejects"] == [reject]
    assert {name: foreseen[name] for name in ("rows", "inserted", "rejected")} == {
        "rows": 3,
        "inserted": 2,
        "rejected": 1,
    }
    assert foreseen["layout"]["columns"] == ["country", "id", "age"]

    mapping = ColumnMapping.load(foreseen["mapping"])
    repaired = json.dumps(
        {**foreseen["mapping"], "columns": [{"source": "age", "type": "Int32", "on_misfit": "unset"}]}
    )
    done = ask("POST", f"{PATH}?mapping={repaired}&mode=skip&name=p.csv", TEXT).json()
    assert (mapping.row_key, done["mapping"]["row_key"]) == ("{id}", "{id}")
    assert (done["inserted"], done["skipped"], done["rejected"], count(table)) == (2, 1, 0, 2)
    activity = Activity.objects.get(verb="entity.import")
    assert (activity.pk, activity.detail["file"]) == (done["activity"], "p.csv")

    again = ask("POST", f"{PATH}?{KEYS}", TEXT).json()
    assert (again["inserted"], [it["reason"] for it in again["rejects"]]) == (0, ["exists"])
    [file] = again["job"]["files"]
    path = f"jobs/{again['job']['id']}/files/{file['id']}"
    assert b"An entity with its keys exists." in b"".join(ask("GET", path).streaming_content)


def test_a_guess_of_the_encoding_says_so_and_names_others(call, table):
    ask = call("eve", "write")
    text = "RowKey;PartitionKey;v\n1;p;İzmir\n2;p;Iğdır\n3;p;Şırnak\n"
    layout = ask("POST", f"{PATH}?dry_run=true", text.encode("cp1254")).json()["layout"]
    assert (layout["encoding"], layout["encoding_is_guess"]) == ("windows-1254", True)
    others = {it["encoding"]: it["samples"] for it in layout["encoding_alternatives"]}
    assert others["windows-1254"] == ["İzmir", "Iğdır", "Şırnak"] and others["windows-1252"][0] == "Ýzmir"
    layout = ask("POST", f"{PATH}?dry_run=true&encoding=latin-1", text.encode("cp1254")).json()["layout"]
    assert (layout["encoding"], layout["encoding_is_guess"]) == ("windows-1252", False)
    layout = ask("POST", f"{PATH}?dry_run=true", text.encode()).json()["layout"]
    assert (layout["encoding_is_guess"], layout["encoding_alternatives"]) == (False, [])


def test_other_encodings_are_refused_before_the_body(call, table):
    client = call("eve", "write")
    for name in ["punycode", "hz", "iso2022_jp", "unicode_escape", "klingon"]:
        refused = client("POST", f"{PATH}?{KEYS}&encoding={name}", TEXT)
        assert refused.status_code == 400 and "windows-1252" in refused.json()["errors"][0]["detail"], name
        assert not JobFile.objects.exists(), name


def test_more_columns_than_an_entity_can_have_are_refused(call, table):
    text = ",".join(f"c{number}" for number in range(20_000)).encode() + b"\n"
    refused = call("eve", "write")("POST", f"{PATH}?dry_run=true", text + b"1," * 20_000 + b"\n")
    assert refused.status_code == 400 and "20000 columns" in refused.json()["detail"]


def test_parts_of_the_file_left_out_are_reported(call, table):
    text = b"rowkey;PartitionKey;Timestamp;a b;age\n1;se;2026-11-28;x;n/a\n;;;;\n;;;;\n"
    mapping = {"partition_key": "{PartitionKey}", "row_key": "{rowkey}",
               "columns": [{"source": "age", "type": "Int32", "on_misfit": "unset"}]}  # fmt: skip
    for query in ("dry_run=true", ""):
        done = call("eve", "write")("POST", f"{PATH}?{query}&mapping={json.dumps(mapping)}", text).json()
        assert (done["rows"], done["inserted"], done["rejected"]) == (1, 1, 0)
        report = done["report"]
        assert report["blank_rows"] == 2
        assert [(it["column"], it["use"], it["target"], it["detail"]) for it in report["columns"]] == [
            ("rowkey", "key", "RowKey", "rowkey is used as RowKey."),
            ("a b", "renamed", "a_b", "a b becomes the property a_b."),
            ("Timestamp", "timestamp", "", "Timestamp is left out: the service sets it."),
        ]
        detail = "1 value of age left out: not of its type, such as 'n/a'."
        assert report["values"] == [
            {"column": "age", "change": "dropped", "values": 1, "examples": ["n/a"], "detail": detail}
        ]


def test_times_without_a_zone_get_one(call, table):
    query = f"{PATH}?dry_run=true&zone="
    text = b"PartitionKey,RowKey,at\np,1,2026-01-15 14:30\n"
    zoned = call("eve", "write")("POST", f"{query}Europe/Istanbul", text).json()
    [column] = zoned["mapping"]["columns"]
    assert (zoned["mapping"]["zone"], column["type"]) == ("Europe/Istanbul", "Edm.DateTime")
    plain = call("eve", "write")("POST", query, text).json()
    assert plain["mapping"]["columns"][0]["type"] == "Edm.String"
    assert call("eve", "write")("POST", f"{query}Nowhere", text).status_code == 400


def test_numbers_and_dates_are_proposed_and_read_by_a_mapping(call, table):
    ask = call("eve", "write")
    text = b"PartitionKey;RowKey;amount;since\np;1;1.234,56;28.11.2026\np;2;99,90;13/45/2026\n"
    done = ask("POST", f"{PATH}?dry_run=true", text).json()
    amount, since = done["columns"]
    assert (amount["type"], [it["format"] for it in amount["formats"]]) == ("String", ["decimal-comma"])
    assert amount["formats"][0] == {
        "type": "Double", "format": "decimal-comma", "certainty": "certain", "values": 2, "fitting": 2, "misfits": [],
        "samples": [["1.234,56", "1234.56"], ["99,90", "99.90"]],
        "detail": "All values are numbers with a decimal comma: 1.234,56 → 1234.56, 99,90 → 99.90.",
    }  # fmt: skip
    assert not since["formats"]
    columns = [{"source": "amount", "format": "decimal-comma"}, {"source": "since", "format": "dd.MM.yyyy"}]
    mapping = json.dumps({"columns": columns})
    done = ask("POST", f"{PATH}?mapping={mapping}", text).json()
    assert (done["inserted"], done["rejects"][0]["reason"]) == (1, "not-in-format")
    assert done["rejects"][0]["detail"] == "since is not a date, day first."
    assert done["mapping"]["columns"][1]["format"] == "day-first"
    mapping = json.dumps({"columns": [{"source": "amount", "format": "klingon"}]})
    refused = ask("POST", f"{PATH}?mapping={mapping}", text)
    assert refused.status_code == 400 and "not a format" in refused.content.decode()


def test_missing_keys_are_proposed(call, table):
    refused = call("eve", "write")("POST", PATH, TEXT.replace(b"tr,2,41", b"tr,3,41"))
    assert refused.status_code == 400
    assert "Proposed: PartitionKey {country}, RowKey {id}." in refused.json()["detail"]


def test_a_new_table_and_a_request_that_arrives_twice(call, account):
    ask = call("max", "write")
    headers = {"Prefer": "respond-async", "Idempotency-Key": "nightly"}
    assert ask("POST", f"{PATH}?{KEYS}", TEXT).status_code == 404
    assert ask("POST", f"{PATH}?{KEYS}&create=true&dry_run=true", TEXT).json()["inserted"] == 2
    begun = ask("POST", f"{PATH}?{KEYS}&create=true", TEXT, **headers)
    assert (begun.status_code, begun["Preference-Applied"]) == (202, "respond-async")
    again = ask("POST", f"{PATH}?{KEYS}&create=true", TEXT, **headers)
    assert again.json()["id"] == begun.json()["id"]
    assert ask("POST", PATH, TEXT, **headers).status_code == 422
    job_runner.run_all()
    ended = ask("GET", begun["Location"]).json()
    assert (ended["status"], ended["counts"]["inserted"], ended["table"]) == ("done", 2, "people")


def test_refuses(call, table, settings):
    eve = call("eve", "write")
    assert call("victor", "read")("POST", f"{PATH}?{KEYS}", TEXT).status_code == 403
    assert eve("POST", f"{PATH}?{KEYS}&mode=upsert", TEXT).status_code == 400
    assert "RowKey" in eve("POST", f"{PATH}?partition_key=x", TEXT).json()["detail"]
    for mapping in ("[]", "{", '{"row_key": 5}', '{"columns": ["x"]}', '{"columns": [{"source": 1}]}'):
        refused = eve("POST", f"{PATH}?mapping={mapping}", TEXT).json()
        assert refused["errors"][0]["parameter"] == "mapping"
    assert eve("POST", f"{PATH}?{KEYS}&encoding=hex", TEXT).status_code == 400
    assert eve("POST", f"{PATH}?{KEYS}", b"").status_code == 400
    account_settings.change(table.account, read_only=True)
    assert eve("POST", f"{PATH}?{KEYS}", TEXT).status_code == 403
    assert not JobFile.objects.exists()
    account_settings.change(table.account, read_only=False)
    settings.QUOTAS = {**settings.QUOTAS, "upload_megabyte": 0}
    assert eve("POST", f"{PATH}?{KEYS}", TEXT).status_code == 413


@pytest.fixture
def send(monkeypatch):
    """`await send(secret, parts)`: the head and the body of the answer, and how many parts were taken."""

    async def send(secret, parts, *, patience=60.0):
        taken, sent, gone = iter(parts), [], asyncio.Event()
        number = 0

        async def receive():
            nonlocal number
            part = next(taken, None)
            if part is None:
                await gone.wait()
                return {"type": "http.disconnect"}
            number += 1
            return {"type": "http.request", "body": part, "more_body": part != b""}

        async def answer(message):
            sent.append(message)

        monkeypatch.setattr(asgi, "longest_arrival", lambda size: patience)
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"/ui/api/v1/{PATH}",
            "raw_path": f"/ui/api/v1/{PATH}".encode(),
            "query_string": KEYS.replace("{", "%7B").replace("}", "%7D").encode(),
            "headers": [(b"authorization", f"Bearer {secret}".encode()), (b"content-length", b"5000000000")],
            "state": {"ending": asyncio.Event()},
        }
        await asgi.application(scope, receive, answer)
        body = b"".join(it.get("body", b"") for it in sent[1:])
        return sent[0], json.loads(body), number

    return send


async def test_a_body_is_received_in_pieces_once_its_sender_is_known(send, issue, table, monkeypatch):
    monkeypatch.setattr(files, "PIECE", 16)
    rows = [f"se,{number},{number}\n".encode() for number in range(50)]
    head, body, taken = await send("wrong", [TEXT, b""])
    assert (head["status"], body["status"], (b"connection", b"close") in head["headers"]) == (401, 401, True)

    secret = (await in_thread(issue, "eve", "write"))[0]
    head, body, taken = await send(secret, [b"country,id,age\n", *rows, b""])
    assert (head["status"], body["inserted"], taken) == (200, 50, 52)
    kept = await in_thread(lambda: JobFile.objects.get(is_result=False))
    assert kept.size == len(b"country,id,age\n") + sum(map(len, rows))

    head, body, taken = await send(secret, [b"country,id"], patience=0.0)
    assert (head["status"], body["status"]) == (408, 408)
    left = await in_thread(lambda: (JobFile.objects.count(), Job.objects.count()))
    assert left == (1, 1)


def test_a_body_is_refused_when_other_uploads_have_taken_the_room(table):
    by = Actor(ActorKind.TOKEN, "eve")
    upload = uploads.Upload(0)
    upload.accept(files.create("own", account=table.account, by=by), partial(require_room, by))
    upload.write(TEXT, 100)
    JobFile.objects.create(
        name="other", owner="eve", size=20_480 << 20, expires_at=timezone.now() + timedelta(days=1)
    )
    with pytest.raises(UploadTooLarge):
        upload.write(TEXT, 0)
    assert upload.file.size == len(TEXT)

    async def receive():
        return {"type": "http.request", "body": TEXT, "more_body": True}

    upload.check = partial(_refuse, UploadTooLarge(Reason.FILE_TOO_LARGE, megabytes=0))
    with pytest.raises(uploads.UploadRefused) as refused:
        asyncio.run(uploads._receive(upload, receive, 60.0))
    assert refused.value.status == 413


def _refuse(error, size):
    raise error


def test_a_file_without_rows_is_refused_before_there_is_a_job(call, table):
    """Such files are recognized in tests/tabular/test_content.py."""
    client, data = call("eve", "write"), gzip.compress(b"PartitionKey,RowKey,name\n" + b"\n" * 9_000_000, 1)
    for query in ("dry_run=true", "mode=merge", "mapping={}&dry_run=true"):
        answer = client("POST", f"{PATH}?{KEYS}&{query}", data)
        assert (answer.status_code, answer.json()["detail"][:27]) == (400, "There is no row for a long "), (
            query
        )
    assert not Job.objects.exists() and not JobFile.objects.exists()


def test_one_user_cannot_have_all_the_files_read(call, table, settings):
    settings.QUOTAS = {**settings.QUOTAS, "import": 1}
    eve, later = call("eve", "write"), {"Prefer": "respond-async"}
    assert eve("POST", f"{PATH}?{KEYS}", TEXT, **later).status_code == 202
    refused = eve("POST", f"{PATH}?{KEYS}", TEXT, **later)
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert "You have 1 imports" in refused.json()["detail"]
    assert call("max", "write")("POST", f"{PATH}?{KEYS}", TEXT, **later).status_code == 202
    assert JobFile.objects.count() == 2
    job_runner.run_all()
    assert eve("POST", f"{PATH}?{KEYS}&mode=merge", TEXT).status_code == 200
