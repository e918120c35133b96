"""The tool that replays recordings, on small ones that are written here."""

import json
from textwrap import dedent

import pytest

from tests.live_server import KEY
from tests.tools.recordings.__main__ import main, run
from tests.tools.recordings.comparison import Answer, Rules, read_known
from tests.tools.recordings.reading import Message, Unreadable, find, read
from tests.tools.recordings.replay import Accounts
from tests.wire.client import Endpoint

HOST = "https://someone.table.core.windows.net"
JSON = "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
FIRST_ID, SECOND_ID = "1056d2e8-0002-001e-6603-674cea000000", "9bdc7a1e-1a75-11ec-926d-5cf37093a909"
ETAG = "W/\"datetime'2021-05-26T15%3A48%3A14.0142524Z'\""


def exchange(method, path, status, reason, body=None, answer="", headers=(), accept="minimalmetadata"):
    sent = {
        "Accept": [f"application/json;odata={accept}"],
        "Content-Type": ["application/json"],
        "x-ms-date": ["Wed, 26 May 2021 15:48:13 GMT"],
        "x-ms-version": ["2019-02-02"],
    }
    answered = {
        "cache-control": ["no-cache"],
        "date": ["Wed, 26 May 2021 15:48:13 GMT"],
        "x-content-type-options": ["nosniff"],
        "x-ms-version": ["2019-02-02"],
        **{name: [value] for name, value in dict(headers).items()},
    }
    return {
        "request": {"body": body, "headers": sent, "method": method, "uri": HOST + path},
        "response": {
            "body": {"string": answer},
            "headers": answered,
            "status": {"code": status, "message": reason},
        },
    }


CREATED = exchange(
    "POST", "/Tables", 201, "Created", '{"TableName": "recorded"}',
    f'{{"odata.metadata":"{HOST}/$metadata#Tables/@Element","TableName":"recorded"}}',
    {"content-type": JSON, "location": f"{HOST}/Tables('recorded')"},
)  # fmt: skip
UPSERTED = exchange(
    "PUT", "/recorded(PartitionKey='p',RowKey='r')", 204, "No Content", '{"x": 1}', "", {"etag": ETAG}
)
DELETED = exchange("DELETE", "/recorded(PartitionKey='p',RowKey='r')", 204, "No Content")
DELETED["request"]["headers"]["If-Match"] = [ETAG]


def reading(metadata):
    """Return the exchange of a point read, with this metadata before the properties of the entity."""
    return exchange(
        "GET", "/recorded(PartitionKey='p',RowKey='r')", 200, "OK", None,
        f'{{{metadata}"PartitionKey":"p","RowKey":"r","Timestamp":"2021-05-26T15:48:14.0142524Z","x":1}}',
        {"content-type": JSON.replace("minimal", "no"), "etag": ETAG}, accept="nometadata",
    )  # fmt: skip


def write(folder, *exchanges):
    path = folder / "test_table_entity.test_get.yaml"
    path.write_text(json.dumps({"interactions": exchanges, "version": 1}))  # JSON is YAML
    return path


@pytest.fixture(scope="session")
def accounts(server):
    """Make a separate account, whose tables are deleted."""
    server.change_accounts("add", "recordings", "--key1", KEY)
    endpoint = Endpoint(f"{server.url}/recordings", "recordings", KEY, foreign=False)
    return Accounts(endpoint, endpoint)


def test_replays_a_recording_to_the_byte(accounts, tmp_path, capsys):
    report = run([write(tmp_path, CREATED, UPSERTED, reading(""), DELETED)], accounts)
    assert (report.exchanges, report.identical, report.unlisted) == (4, 4, 0), capsys.readouterr().out


@pytest.mark.slow
def test_tells_each_difference_with_both_sides(accounts, tmp_path, capsys):
    other = exchange("DELETE", "/Tables('recorded')", 202, "Accepted", None, "", {"x-more": "1"})
    path = write(tmp_path, CREATED, UPSERTED, reading('"odata.etag":"a",'), other)
    url = accounts.storage.url
    assert main(["--storage", url, "--cosmos", url, str(path)]) == 1
    printed = capsys.readouterr().out
    for text in (
        "exchange 3: GET", "body: members", '"odata.etag":"a"', "exchange 4: DELETE", "recorded: 202",
        "answered: 204", "header x-more: missing", "2   different otherwise",
    ):  # fmt: skip
        assert text in printed


@pytest.mark.slow
def test_makes_what_a_recording_finds(accounts, tmp_path):
    before = exchange("DELETE", "/Tables('earlier')", 204, "No Content")
    report = run([write(tmp_path, before)], accounts)
    assert report.identical == 1


def test_reads_what_the_test_proxy_writes(tmp_path):
    path = tmp_path / "recorded.json"
    path.write_text(
        dedent("""
        {"Entries": [{
          "RequestUri": "https://a.table.cosmos.azure.com/t", "RequestMethod": "POST",
          "RequestHeaders": {"Accept": "application/json", "Authorization": "Sanitized"},
          "RequestBody": {"PartitionKey": "p", "b": 1.50, "a": [1, null]},
          "StatusCode": 201, "ResponseHeaders": {"Server": ["a", "b"]}, "ResponseBody": {"z": 3.0, "é": "\\u0027"}
        }, {
          "RequestUri": "https://a.table.cosmos.azure.com/$batch", "RequestMethod": "POST",
          "RequestHeaders": {"Content-Type": "multipart/mixed; boundary=b"}, "RequestBody": "LS1i",
          "StatusCode": 412, "ResponseHeaders": {}, "ResponseBody": ["{}\\r\\n"]
        }], "Variables": {}}
        """)
    )
    first, second = read(path).exchanges
    assert first.request.body == b'{"PartitionKey":"p","b":1.50,"a":[1,null]}'
    assert (first.reason, first.request.header("Authorization"), first.answer.header("server")) == (
        None,
        None,
        "a, b",
    )
    assert first.answer.body == '{"z":3.0,"é":"\'"}'.encode() and first.answer.parsed
    assert second.request.body == b"--b"
    assert (second.status, second.answer.body, second.answer.parsed) == (412, b"{}\r\n", False)


def test_reads_each_content_once_and_says_what_it_cannot_read(tmp_path):
    first = write(tmp_path, CREATED)
    (tmp_path / "again.yaml").write_bytes(first.read_bytes())
    (tmp_path / "notes.md").write_text("no recording")
    assert len(list(find([tmp_path]))) == 1
    (tmp_path / "broken.yaml").write_text("interactions: [}")
    with pytest.raises(Unreadable, match=r"broken\.yaml"):
        read(tmp_path / "broken.yaml")


@pytest.mark.parametrize(
    ("recorded", "answered", "kind"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1}', "body: order of members"),
        ('{"a":1,"RowKey":"r"}', '{"RowKey":"r","a":1}', "body: place of keys"),
        ('{"a":"é"}', '{"a":"\\u00e9"}', "body: spelling"),
        ('{"a":1}', '{"a":2}', "body: values"),
        ('{"a":1}', '{"b":1}', "body: members"),
        ("", "{}", "body: added"),
        ("{}", "", "body: missing"),
        ("<a/>", "<b/>", "body: text"),
        ('{"odata.error":{}}', "{}", "body: of an error"),
        ('{"Timestamp":"2021-05-26T15:48:14Z"}', '{"Timestamp":"2026-11-29T00:00:00.1234567Z"}', None),
        ('{"moment":"2021-05-26T15:48:14Z"}', '{"moment":"2026-11-29T00:00:00Z"}', "body: values"),
        ('{"m":"RequestID:' + FIRST_ID + '"}', '{"m":"RequestID:' + SECOND_ID + '"}', None),
    ],
)  # fmt: skip
def test_names_how_bodies_differ(recorded, answered, kind):
    sides = [Answer(200, "OK", Message([], body.encode()), []) for body in (recorded, answered)]
    assert [it.kind for it in Rules().compare(*sides)] == ([] if kind is None else [kind])


def test_every_known_difference_has_a_reason():
    assert all(it.reason for it in read_known())
