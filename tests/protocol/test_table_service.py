"""Requests against the application itself: what it reads, what it refuses at which stage, what every answer carries."""

import asyncio
import base64
import hashlib
import json
import logging
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import urlencode
from xml.etree import ElementTree

import psycopg
import pytest
from django.conf import settings

from storage.domain.access.signature import SignedRequest, sign
from storage.models import Account, Activity
from storage.operations import accounts, tables
from storage.operations.threads import in_thread
from storage.protocol import body as request_body
from storage.protocol.body import BODY_LIMIT
from storage.protocol.call import ServerSettings
from storage.protocol.table_service import TableService, join_repeated
from storage.sql import lanes
from storage.sql.statement import Lane
from tests.cost import costs_less_than
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNT, KEY = "account1", b"k" * 64
JSON = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json"}
GUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The code, which header and body agree on."""
        if self.body.startswith(b"{"):
            code = self.json["odata.error"]["code"]
        else:
            code = next(
                element for element in ElementTree.fromstring(self.body) if element.tag.endswith("code")
            ).text
        assert self.headers["x-ms-error-code"] == code
        return code


@asynccontextmanager
async def running(**rules):
    service = TableService(ServerSettings(settings.LANES_CONNINFO, **rules))
    await service.startup()
    try:
        yield service
    finally:
        await service.shutdown()


@pytest.fixture
async def service(monkeypatch):
    monkeypatch.setitem(lanes.COUNTS, Lane.KEY, 2)
    monkeypatch.setitem(lanes.COUNTS, Lane.FILTER, 1)
    await in_thread(accounts.add, ACCOUNT, KEY)
    async with running(host_suffixes=("table.localhost",)) as service:
        yield service


@pytest.fixture
def send(service):
    return sender(service)


def sender(service):
    """`await send(method, path)`: the reply to a signed request; `chunks` may be given in place of a body."""

    async def send(
        method, path, body=b"", headers=JSON, *, more=(), chunks=None, signed=True, key=KEY, host=None
    ):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        sent = {"Host": host or "127.0.0.1:10002", "x-ms-date": formatdate(usegmt=True), **headers}
        if method in ("POST", "PUT", "MERGE", "PATCH"):
            sent = {"Content-Length": str(len(body)), **sent}
        fields = [(name.lower().encode(), value.encode()) for name, value in (*sent.items(), *more)]
        path, _, query = path.encode().partition(b"?")
        if host is None:
            path = f"/{ACCOUNT}".encode() + path if not path.startswith(b"//") else path[1:]
        if signed:
            request = SignedRequest(method, path, query, dict(fields), ACCOUNT)
            fields.append((b"authorization", sign(request, key)))
        return await call(service, method, path, query, fields, [body] if chunks is None else chunks)

    return send


async def call(service, method, path, query, fields, chunks):
    """The reply, None when nothing was sent; a chunk that is None is the end of the connection."""
    incoming = [
        {"type": "http.disconnect"}
        if chunk is None
        else {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
        for number, chunk in enumerate(chunks, 1)
    ]
    outgoing = []

    async def receive():
        return incoming.pop(0)

    async def put(message):
        outgoing.append(message)

    scope = {"type": "http", "method": method, "scheme": "http", "raw_path": path, "query_string": query}
    await service({**scope, "headers": fields}, receive, put)
    if not outgoing:
        return None
    start, *parts = outgoing
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    assert len(headers) == len(start["headers"]), "a header came twice"
    body = b"".join(part.get("body", b"") for part in parts)
    assert method == "HEAD" or headers["Content-Length"] == str(len(body))
    return Reply(start["status"], headers, body)


@pytest.fixture
async def people(send):
    assert (await send("POST", "/Tables", {"TableName": "People"})).status == 201
    return "People"


ADA = {"PartitionKey": "p", "RowKey": "ada", "Born": 1815}
PATH = "/People(PartitionKey='p',RowKey='ada')"


# it works


async def test_a_table_and_its_entities(send):
    created = await send("POST", "/Tables", {"TableName": "People"})
    assert (created.status, created.json) == (201, {"TableName": "People"})
    assert created.headers["Location"] == "http://127.0.0.1:10002/account1/Tables('People')"
    assert (await send("GET", "/Tables")).json == {"value": [{"TableName": "People"}]}
    assert (await send("GET", "/Tables('people')")).json == {"TableName": "People"}

    inserted = await send("POST", "/People", ADA)
    assert inserted.status == 201
    assert inserted.headers["Location"] == f"http://127.0.0.1:10002/account1{PATH}"
    found = await send("GET", PATH)
    assert (found.status, found.json["Born"]) == (200, 1815)
    assert found.headers["ETag"] == inserted.headers["ETag"]

    etag = {"If-Match": found.headers["ETag"]}
    merged = await send("MERGE", PATH, {"Died": 1852}, {**JSON, **etag})
    assert (merged.status, merged.body) == (204, b"")
    assert (await send("PUT", PATH, {}, {**JSON, **etag})).error == "UpdateConditionNotSatisfied"
    (row,) = (await send("GET", "/People()?$filter=Died%20gt%201850&$select=Born,Died")).json["value"]
    assert row == {"Born": 1815, "Died": 1852}

    assert (await send("DELETE", PATH, headers={**JSON, "If-Match": "*"})).status == 204
    assert (await send("GET", PATH)).error == "ResourceNotFound"
    assert (await send("DELETE", "/Tables('People')")).status == 204
    assert (await send("GET", "/People")).error == "TableNotFound"


async def test_a_batch(send, people):
    part = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{}\r\n"

    async def batch(*requests):
        inner = "".join(f"--c\r\n{part.format(request)}" for request in requests) + "--c--\r\n"
        body = f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{inner}--b--\r\n"
        headers = {"Content-Type": "multipart/mixed; boundary=b"}
        return (await send("POST", "/$batch", body.encode(), headers)).body.decode()

    def insert(row_key, table="People"):
        entity = json.dumps({"PartitionKey": "p", "RowKey": row_key})
        return (
            f"POST http://127.0.0.1:10002/account1/{table} HTTP/1.1\r\n"
            f"Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n{entity}"
        )

    assert (await batch(insert("1"), insert("2"))).count("HTTP/1.1 204 No Content") == 2
    assert '"value":"1:The specified entity already exists.' in await batch(insert("3"), insert("1"))
    assert '"value":"0:The table specified does not exist.' in await batch(insert("3", "Places"))
    assert len((await send("GET", "/People")).json["value"]) == 2


# what every answer carries


async def test_the_headers_of_an_answer_with_a_body(send, people):
    await send("POST", "/People", ADA)

    reply = await send(
        "GET", PATH, headers={**JSON, "x-ms-version": "2019-02-02", "x-ms-client-request-id": "id 1"}
    )

    assert {
        name: reply.headers[name] for name in reply.headers if name not in ("ETag", "x-ms-request-id")
    } == {
        "Server": reply.headers["Server"],
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        "Content-Type": "application/json;odata=nometadata;streaming=true;charset=utf-8",
        "Content-Length": str(len(reply.body)),
        "x-ms-version": "2019-02-02",
        "x-ms-client-request-id": "id 1",
    }
    assert reply.headers["Server"].startswith("Windows-Azure-Table/1.0")
    assert GUID.fullmatch(reply.headers["x-ms-request-id"])


async def test_every_request_has_an_id_of_its_own(send):
    replies = [await send("GET", "/Tables", signed=number % 2 == 0) for number in range(6)]

    ids = {reply.headers["x-ms-request-id"] for reply in replies}
    assert len(ids) == 6
    assert (
        f"RequestId:{replies[1].headers['x-ms-request-id']}"
        in replies[1].json["odata.error"]["message"]["value"]
    )


async def test_an_answer_without_a_body_says_so(send, people):
    reply = await send("PUT", PATH, {"A": 1})

    assert (reply.status, reply.headers["Content-Length"]) == (204, "0")
    assert "Content-Type" not in reply.headers
    assert reply.headers["ETag"].startswith("W/\"datetime'")


async def test_a_client_request_id_is_echoed_unless_it_is_huge(send):
    for length, echoed in ((0, True), (1024, True), (1025, False)):
        reply = await send("GET", "/Tables", headers={"x-ms-client-request-id": "x" * length})
        assert ("x-ms-client-request-id" in reply.headers) is echoed

    refused = await send("GET", "/Tables", headers={"x-ms-client-request-id": "mine"}, signed=False)
    assert refused.headers["x-ms-client-request-id"] == "mine"


# who asks


@pytest.mark.parametrize(
    ("accept", "start"),
    [("application/json", b'{"odata.error"'), ("*/*", b'<?xml version="1.0" encoding="utf-8"?><m:error')],
)
async def test_who_does_not_sign_is_refused(send, accept, start):
    reply = await send("GET", "/Tables", headers={"Accept": accept}, signed=False)

    assert (reply.status, reply.error) == (403, "AuthenticationFailed")
    assert reply.body.startswith(start)


async def test_the_signature_goes_before_everything_else(send):
    wrong = {
        "version": {"x-ms-version": "never"},
        "method": {"X-HTTP-Method": "NEVER"},
        "type": {"Content-Type": "text/plain"},
    }
    for headers in wrong.values():
        reply = await send("POST", "/Missing?$never=1&timeout=x", b"never", headers, key=b"wrong")
        assert reply.error == "AuthenticationFailed"


async def test_an_account_that_is_unknown(send):
    reply = await send("GET", "//unknown/Tables")

    assert (reply.status, reply.error) == (403, "AuthenticationFailed")


async def test_a_key_that_was_rotated(send):
    assert (await send("GET", "/Tables")).status == 200

    account = await in_thread(accounts.rotate, ACCOUNT, 1)
    new, _ = accounts.keys_of(account)

    async with asyncio.timeout(60):
        while (await send("GET", "/Tables")).status != 403:  # noqa: ASYNC110 - PostgreSQL has the event
            await asyncio.sleep(0.01)
    assert (await send("GET", "/Tables", key=new)).status == 200


async def test_who_did_it_is_kept_in_mind(send):
    reply = await send("POST", "/Tables", {"TableName": "People"}, {**JSON, "User-Agent": "an SDK"})
    xml = {**JSON, "Content-Type": "application/xml"}
    policy = b"<SignedIdentifier><Id>a</Id></SignedIdentifier>"
    await send("PUT", "/People?comp=acl", b"<SignedIdentifiers>%b</SignedIdentifiers>" % policy, xml)
    off = b"<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
    metrics = b"<Version>1.0</Version><Enabled>false</Enabled>" + off
    properties = (
        b"<StorageServiceProperties><HourMetrics>%b</HourMetrics></StorageServiceProperties>" % metrics
    )
    await send("PUT", "/?restype=service&comp=properties", properties, xml)
    await send("DELETE", "/Tables('People')")

    kept = await in_thread(lambda: list(Activity.objects.filter(actor_kind="key").order_by("pk")))
    assert [it.verb for it in kept] == ["table.create", "policies.set", "properties.set", "table.delete"]
    assert {it.actor for it in kept} == {"key1"}
    assert (kept[0].agent, kept[0].table_name, kept[0].account_name) == ("an SDK", "People", ACCOUNT)
    assert kept[0].request_id == reply.headers["x-ms-request-id"]


async def test_a_token_is_kept_in_mind_by_its_fingerprint(send):
    token = tokens.parameters(
        {"sas": {"ss": "t", "srt": "co", "sp": "rwdlac"}}, ACCOUNT, base64.b64encode(KEY).decode()
    )
    reply = await send("POST", f"/Tables?{urlencode(token)}", {"TableName": "People"}, signed=False)
    assert reply.status == 201

    (kept,) = await in_thread(lambda: list(Activity.objects.filter(actor_kind="sas")))
    assert re.fullmatch("[0-9a-f]{64}", kept.actor)
    assert token["sig"] not in str(vars(kept))


async def test_a_disabled_account_is_refused(monkeypatch):
    await in_thread(accounts.add, ACCOUNT, KEY)
    await in_thread(Account.objects.update, enabled=False)

    async with running() as service:
        fields = [(b"host", b"h"), (b"x-ms-date", formatdate(usegmt=True).encode())]
        request = SignedRequest("GET", b"/account1/Tables", b"", dict(fields), ACCOUNT)
        fields.append((b"authorization", sign(request, KEY)))
        reply = await call(service, "GET", b"/account1/Tables", b"", fields, [b""])

    assert reply.status == 403


# where


async def test_the_secondary_answers_reads_and_refuses_writes(send, people):
    path = "//account1-secondary"
    reply = await send("GET", f"{path}/Tables", headers={"Accept": "application/json"})
    assert reply.json["odata.metadata"] == "http://127.0.0.1:10002/account1-secondary/$metadata#Tables"

    for method, target in (("POST", "/People"), ("PUT", PATH), ("DELETE", PATH), ("POST", "/$batch")):
        reply = await send(method, path + target, ADA, {**JSON, "If-Match": "*"})
        assert (reply.status, reply.error) == (403, "InsufficientAccountPermissions")


async def test_the_account_may_be_in_the_host(send, people):
    reply = await send("POST", "/People", ADA, host="account1.table.localhost:10002")

    assert reply.headers["Location"] == f"http://account1.table.localhost:10002{PATH}"
    assert (await send("GET", PATH)).status == 200


@pytest.mark.parametrize("host", ["", "a b", "a/b"])
async def test_a_request_without_a_sound_host(service, host):
    reply = await call(service, "GET", b"/account1/Tables", b"", [(b"host", host.encode())], [b""])

    assert (reply.status, reply.error) == (400, "HostInformationNotPresent")


async def test_what_cannot_be_decoded(send):
    assert (await send("GET", "/%ff")).error == "InvalidUri"
    assert (await send("GET", "/People?$filter=%ff")).error == "InvalidUri"


# what: methods and versions


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/Tables", "GET, POST"),
        ("POST", "/Tables('People')", "GET, DELETE"),
        ("DELETE", "/People", "GET, POST"),
        ("POST", PATH, "GET, PUT, MERGE, PATCH, DELETE"),
        ("GET", "/$batch", "POST"),
    ],
)
async def test_a_method_that_does_not_fit(send, people, method, path, allowed):
    reply = await send(method, path, {})

    assert (reply.status, reply.error) == (405, "MethodNotAllowed")
    assert reply.headers["Allow"] == allowed


@pytest.mark.parametrize("path", ["/Tables", "/People", PATH, "/"])
async def test_head_is_not_allowed_and_has_no_body(send, people, path):
    reply = await send("HEAD", path)

    assert (reply.status, reply.body) == (405, b"")
    assert int(reply.headers["Content-Length"]) > 0


async def test_nothing_is_at_the_service_itself(send):
    for path in ("", "/"):
        assert (await send("GET", path)).error == "UnsupportedHttpVerb"


async def test_preflight_needs_no_signature(send):
    cors = {"Origin": "http://x", "Access-Control-Request-Method": "GET"}

    refused = await send("OPTIONS", "/People", headers=cors, signed=False)
    assert (refused.status, refused.error) == (403, "CorsPreflightFailure")
    incomplete = await send("OPTIONS", "/People", headers={"Origin": "http://x"}, signed=False)
    assert (incomplete.status, incomplete.error) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("method", ["MERGE", "PATCH", "PUT", "DELETE", "merge"])
async def test_methods_may_be_tunnelled(send, people, method):
    await send("POST", "/People", ADA)

    reply = await send("POST", PATH, {"A": 1}, {**JSON, "X-HTTP-Method": method, "If-Match": "*"})

    assert reply.status == 204


@pytest.mark.parametrize(
    ("method", "headers", "more", "error"),
    [
        ("POST", {"X-HTTP-Method": "NEVER"}, [], "XMethodIncorrectValue"),
        ("PUT", {"X-HTTP-Method": "MERGE"}, [], "XMethodNotUsingPost"),
        ("POST", {"X-HTTP-Method": "MERGE"}, [("X-HTTP-Method", "MERGE")], "XMethodIncorrectCount"),
    ],
)
async def test_methods_tunnelled_badly(send, people, method, headers, more, error):
    reply = await send(method, PATH, {"A": 1}, {**JSON, **headers}, more=more)

    assert (reply.status, reply.error) == (400, error)


async def test_versions(send):
    for version in ("2009-04-14", "2026-06-06", "2031-01-01"):
        reply = await send("GET", "/Tables", headers={"x-ms-version": version})
        assert reply.headers["x-ms-version"] == version

    for version in ("never", "2020-02-30", "2008-01-01"):
        reply = await send("GET", "/Tables", headers={"x-ms-version": version})
        assert (reply.status, reply.error) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/People?comp=acl", 200),
        ("/Places?comp=acl", 404),
        ("/?restype=service&comp=properties", 200),
        ("/?restype=service&comp=stats", 400),
    ],
)
async def test_xml_operations_are_answered_in_xml(send, people, path, status):
    reply = await send("GET", path, headers={"Accept": "application/json"})

    assert reply.status == status
    assert reply.headers["Content-Type"] == "application/xml"
    assert "Cache-Control" not in reply.headers
    ElementTree.fromstring(reply.body)


async def test_a_table_has_no_properties_of_the_service(send, people):
    reply = await send("GET", "/People?restype=service&comp=properties")

    assert (reply.status, reply.error) == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("$orderby=A", 501, "NotImplemented"),
        ("timeout=x", 400, "InvalidQueryParameterValue"),
        ("timeout=0", 400, "OutOfRangeQueryParameterValue"),
        ("$top=1001", 400, "InvalidInput"),
        ("$filter=A%20eq", 400, "InvalidInput"),
        ("NextPartitionKey=x", 400, "InvalidInput"),
        ("$top=1&$top=1", 400, "InvalidInput"),
    ],
)
async def test_options_that_do_not_fit(send, people, query, status, error):
    reply = await send("GET", f"/People?{query}")

    assert (reply.status, reply.error) == (status, error)


@pytest.mark.parametrize(
    ("accept", "status", "content_type"),
    [
        (
            "application/json;odata=fullmetadata",
            404,
            "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        ),
        ("application/json", 404, "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"),
        ("*/*", 404, "application/xml;charset=utf-8"),
        ("application/atom+xml", 415, "application/xml;charset=utf-8"),
    ],
)
async def test_the_form_of_an_error(send, people, accept, status, content_type):
    reply = await send("GET", PATH, headers={"Accept": accept, "x-ms-version": "2019-02-02"})

    assert reply.status == status
    assert reply.headers["Content-Type"] == content_type
    assert reply.error == ("ResourceNotFound" if status == 404 else "AtomFormatNotSupported")


# bodies


async def test_a_body_may_come_in_pieces(send, people):
    body = json.dumps(ADA).encode()

    reply = await send(
        "POST",
        "/People",
        headers={**JSON, "Transfer-Encoding": "chunked"},
        chunks=[*(bytes([b]) for b in body), b""],
    )

    assert reply.status == 201
    assert (await send("GET", PATH)).json["Born"] == 1815


@pytest.mark.parametrize("method", ["POST", "PUT", "MERGE", "PATCH"])
async def test_a_body_needs_a_length(service, send, people, method):
    path = b"/account1/People" + (b"" if method == "POST" else b"(PartitionKey='p',RowKey='r')")
    fields = [
        (b"host", b"h"),
        (b"x-ms-date", formatdate(usegmt=True).encode()),
        (b"content-type", b"application/json"),
    ]
    request = SignedRequest(method, path, b"", dict(fields), ACCOUNT)
    fields.append((b"authorization", sign(request, KEY)))

    reply = await call(service, method, path, b"", fields, [])

    assert (reply.status, reply.error) == (411, "MissingContentLengthHeader")


async def test_a_body_holds_4_mib_and_no_more(send, people):
    entity = json.dumps({**ADA, "odata.ignored": ""}).encode()
    room = BODY_LIMIT - len(entity)
    fits = entity.replace(b'"odata.ignored": ""', b'"odata.ignored": "%b"' % (b"x" * room))
    assert len(fits) == BODY_LIMIT

    assert (await send("POST", "/People", fits)).status == 201
    reply = await send("POST", "/People", fits + b" ")
    assert (reply.status, reply.error) == (413, "RequestBodyTooLarge")


async def test_a_body_that_is_too_large_is_read_to_its_end_so_that_the_connection_lives(
    send, people, monkeypatch
):
    piece = b"x" * 1024 * 1024

    reply = await send("POST", "/People", chunks=[piece] * 12)
    assert reply.error == "RequestBodyTooLarge"
    assert "Connection" not in reply.headers

    monkeypatch.setattr(request_body, "DRAIN_LIMIT", 6 * 1024 * 1024)
    reply = await send("POST", "/People", chunks=[piece] * 12)
    assert reply.error == "RequestBodyTooLarge"
    assert reply.headers["Connection"] == "close"


async def test_the_body_of_a_refused_request_is_read_as_well(send):
    reply = await send("POST", "/Tables", chunks=[b"{", b"}", b""], signed=False)

    assert reply.error == "AuthenticationFailed"
    assert "Connection" not in reply.headers


@pytest.mark.parametrize("signed", [True, False])
async def test_a_client_that_goes_away_gets_no_answer_and_changes_nothing(send, people, signed):
    body = json.dumps(ADA).encode()

    assert await send("POST", "/People", chunks=[body, None], signed=signed) is None

    assert (await send("GET", "/People")).json["value"] == []


async def test_the_digest_of_a_body_is_checked(send, people):
    body = json.dumps(ADA).encode()

    def digest(value):
        return {**JSON, "Content-MD5": base64.b64encode(value).decode()}

    right = hashlib.md5(body, usedforsecurity=False).digest()
    assert (await send("POST", "/People", body, digest(b"x" * 16))).error == "Md5Mismatch"
    assert (await send("POST", "/People", body, digest(b"x" * 15))).error == "InvalidMd5"
    assert (await send("POST", "/People", body, {**JSON, "Content-MD5": "%"})).error == "InvalidMd5"
    assert (await send("POST", "/People", body, digest(right))).status == 201


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"A":', b"\xff"])
async def test_what_is_no_json_is_refused_before_the_table_is_looked_for(send, body):
    reply = await send("POST", "/Missing", body)

    assert (reply.status, reply.error) == (400, "InvalidInput")


async def test_a_missing_table_goes_before_what_is_wrong_with_the_entity(send):
    for body in ({}, {**ADA, "1": 1}, {**ADA, "A": []}, {**ADA, "RowKey": "a/b"}):
        assert (await send("POST", "/Missing", body)).error == "TableNotFound"


@pytest.mark.parametrize(
    ("media_type", "error"),
    [("text/plain", "MediaTypeNotSupported"), ("application/atom+xml", "AtomFormatNotSupported")],
)
async def test_a_body_of_another_type(send, people, media_type, error):
    reply = await send("POST", "/People", ADA, {**JSON, "Content-Type": media_type})

    assert (reply.status, reply.error) == (415, error)


async def test_the_length_of_keys_is_a_rule_of_the_server(send, people):
    long = {**ADA, "RowKey": "x" * 600}
    assert (await send("POST", "/People", long)).status == 201

    async with running(key_length_limit=512) as stricter:
        send = sender(stricter)
        too_long = f"/People(PartitionKey='p',RowKey='{'x' * 513}')"
        assert (await send("PUT", too_long, {})).error == "KeyValueTooLarge"
        assert (await send("POST", "/People", long)).error == "KeyValueTooLarge"


# when the server is at its end


async def test_a_fault_of_ours_is_logged_and_told_without_details(send, people, caplog):
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        relation = (await in_thread(tables.get, (await in_thread(Account.objects.get)).pk, people)).pk
        connection.execute(f"ALTER TABLE entity_{relation} RENAME COLUMN vals TO something_else")

    with caplog.at_level(logging.ERROR):
        reply = await send("GET", PATH)

    assert (reply.status, reply.error) == (500, "InternalError")
    assert b"vals" not in reply.body
    assert reply.headers["x-ms-request-id"] in caplog.text
    assert "vals" in caplog.text


async def test_who_finds_no_lane_is_asked_to_come_back(send, people, monkeypatch):
    monkeypatch.setattr(lanes, "_ACQUIRE_TIMEOUT", 0.1)
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        relation = (await in_thread(tables.get, (await in_thread(Account.objects.get)).pk, people)).pk
        connection.execute(f"LOCK TABLE entity_{relation} IN ACCESS EXCLUSIVE MODE")
        waiting = [asyncio.create_task(send("GET", PATH)) for _ in range(2)]
        await asyncio.sleep(0.1)

        reply = await send("GET", PATH)

        assert (reply.status, reply.error) == (503, "ServerBusy")
        assert reply.headers["Retry-After"] == "1"
        connection.rollback()
    assert [reply.status for reply in await asyncio.gather(*waiting)] == [404, 404]


def test_headers_that_come_twice_are_joined_in_no_time():
    fields = [(b"h%d" % number, b"") for number in range(20_000)] + [(b"accept", b"a"), (b"accept", b"b")]

    with costs_less_than(1):
        headers = join_repeated(fields)

    assert headers[b"accept"] == b"a, b"
    assert len(headers) == 20_001
