"""Requests against the application itself: what it reads, what it refuses at which stage, what every answer carries."""

import asyncio
import base64
import gc
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
from uvicorn.protocols.http.flow_control import FlowControl

from storage.accounts import accounts, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.domain.access.signature import SignedRequest, sign
from storage.domain.errors import StorageError
from storage.models import Account, Activity
from storage.protocol import http_request, request_memory
from storage.protocol.call import ServerSettings
from storage.protocol.http_exchange import Deliver
from storage.protocol.http_request import RequestBody, RequestHead, join_repeated
from storage.protocol.request_memory import FACTOR, SMALL, memory
from storage.protocol.table_service import TableService
from storage.runtime.threads import in_thread
from storage.sql import lanes
from storage.sql.statement import Lane
from storage.tables import tables
from tests.cost import costs_less_than
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNT, KEY = "account1", b"k" * 64
JSON = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json"}
BATCH = {"Content-Type": "multipart/mixed; boundary=b"}
GUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    deliver: Deliver | None = None  # delivery of less than the whole answer

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """Return the error code, on which header and body agree."""
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
    with pytest.MonkeyPatch.context() as patch:
        # on a slow machine periodic work and jobs would begin in the middle of a test
        patch.setattr("storage.runtime.service._BACKGROUND_DELAY", 3600.0)
        await service.startup()
        try:
            yield service
        finally:
            await service.shutdown()


@pytest.fixture
async def service(monkeypatch):
    monkeypatch.setitem(lanes.COUNTS, Lane.KEY, 2)
    monkeypatch.setitem(lanes.COUNTS, Lane.FILTER, 1)
    await in_thread(accounts.add, ACCOUNT, NewAccount(KEY))
    async with running(host_suffixes=("table.localhost",)) as service:
        yield service


@pytest.fixture
def send(service):
    return sender(service)


def sender(service):
    """`await send(method, path)`: the reply to a signed request; `chunks` may be given in place of a body."""

    async def send(method, path, body=b"", headers=JSON, *, chunks=None, signed=True, key=KEY, host=None):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        sent = {"Host": host or "127.0.0.1:10002", "x-ms-date": formatdate(usegmt=True), **headers}
        if method in ("POST", "PUT", "MERGE", "PATCH"):
            sent = {"Content-Length": str(len(body)), **sent}
        fields = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
        path, _, query = path.encode().partition(b"?")
        if host is None:
            path = f"/{ACCOUNT}".encode() + path
        if signed:
            request = SignedRequest(method, path, query, dict(fields), ACCOUNT)
            fields.append((b"authorization", sign(request, key)))
        return await call(service, method, path, query, fields, [body] if chunks is None else chunks)

    return send


async def call(service, method, path, query, fields, chunks):
    """Return the reply, or None when nothing was sent; a chunk of None is the end of the connection."""
    replies = []

    def write(status, headers, body, reusable, reason, deliver=None):
        names = {name.decode(): value.decode() for name, value in headers}
        assert len(names) == len(headers), "a header came twice"
        assert method == "HEAD" or names["Content-Length"] == str(len(body))
        names = names if reusable else {**names, "Connection": "close"}
        replies.append(Reply(status, names, body, deliver))

    head = RequestHead(method, path, query, fields, join_repeated(fields), "http", "", 0)
    body = RequestBody(FlowControl(Reading()))
    serving = asyncio.create_task(service.serve(head, body, write))
    for chunk in chunks:
        await asyncio.sleep(0)  # the service may read before the next one comes
        body.feed(chunk) if chunk is not None else body.lose()
    if None not in chunks:
        body.finish()
    await serving
    body.release()
    return replies[0] if replies else None


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/people", b'{"PartitionKey":"p"}', JSON),
        ("/people", b'{"PartitionKey":', JSON),
        ("/$batch", b"--b\r\n\r\nGET /people(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n--b--", BATCH),
        ("/$batch", b"--b\r\n\r\nGET /people?$filter=x HTTP/1.1\r\n\r\n--b--", BATCH),
        (
            "/$batch",
            b"--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nPOST /people HTTP/1.1\n\n{}\n--c--\n--b--",
            BATCH,
        ),
    ],
)
async def test_a_refused_request_is_not_kept_by_its_error(send, path, body, headers):
    """Its frames refer to the body, and the garbage collector runs rarely."""
    await send("POST", "/Tables", {"TableName": "people"})
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        reply = await send("POST", path, body, headers)
        gc.collect()
        kept = [it for it in gc.garbage if isinstance(it, StorageError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert reply.status in (202, 400) and kept == []


class Reading(asyncio.Transport):
    """A connection that may be told to stop reading."""

    def pause_reading(self): ...

    def resume_reading(self): ...


@pytest.fixture
async def people(send):
    assert (await send("POST", "/Tables", {"TableName": "People"})).status == 201
    return "People"


ADA = {"PartitionKey": "p", "RowKey": "ada", "Born": 1815}
PATH = "/People(PartitionKey='p',RowKey='ada')"


# headers of every answer


async def test_every_request_has_an_id_of_its_own(send):
    replies = [await send("GET", "/Tables", signed=number % 2 == 0) for number in range(6)]

    ids = {reply.headers["x-ms-request-id"] for reply in replies}
    assert len(ids) == 6
    assert all(map(GUID.fullmatch, ids))


# authentication


async def test_a_key_that_was_rotated(send):
    assert (await send("GET", "/Tables")).status == 200

    account = await in_thread(accounts.rotate, ACCOUNT, 1)
    new, _ = sealed_keys.keys_of(account)

    async with asyncio.timeout(60):
        while (await send("GET", "/Tables")).status != 403:  # noqa: ASYNC110 - PostgreSQL has the event
            await asyncio.sleep(0.01)
    assert (await send("GET", "/Tables", key=new)).status == 200


async def test_activities_record_the_actor(send):
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
    await in_thread(accounts.add, ACCOUNT, NewAccount(KEY))
    await in_thread(Account.objects.update, enabled=False)

    async with running() as service:
        fields = [(b"host", b"h"), (b"x-ms-date", formatdate(usegmt=True).encode())]
        request = SignedRequest("GET", b"/account1/Tables", b"", dict(fields), ACCOUNT)
        fields.append((b"authorization", sign(request, KEY)))
        reply = await call(service, "GET", b"/account1/Tables", b"", fields, [b""])

    assert reply.status == 403


# where


async def test_the_account_may_be_in_the_host(send, people):
    reply = await send("POST", "/People", ADA, host="account1.table.localhost:10002")

    assert reply.headers["Location"] == f"http://account1.table.localhost:10002{PATH}"
    assert (await send("GET", PATH)).status == 200


# bodies


async def test_a_body_that_is_too_large_is_read_to_its_end_so_that_the_connection_lives(
    send, people, monkeypatch
):
    piece = b"x" * 1024 * 1024

    reply = await send("POST", "/People", chunks=[piece] * 12)
    assert reply.error == "RequestBodyTooLarge"
    assert "Connection" not in reply.headers

    monkeypatch.setattr(http_request, "DRAIN_LIMIT", 6 * 1024 * 1024)
    reply = await send("POST", "/People", chunks=[piece] * 12)
    assert reply.error == "RequestBodyTooLarge"
    assert reply.headers["Connection"] == "close"


@pytest.fixture
def full(monkeypatch):
    """Large bodies have taken what they may of the budget."""
    monkeypatch.setattr(request_memory, "PATIENCE", 0)
    monkeypatch.setattr(memory, "service", budget := request_memory.BodyBudget(16 * SMALL * FACTOR))
    budget.take(12 * SMALL)
    return budget


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_large_body_without_memory_gets_server_busy(send, people, full, is_chunked):
    headers = {**JSON, "Transfer-Encoding": "chunked"} if is_chunked else JSON
    before = full.used

    reply = await send("POST", "/People", b"x" * 200_000, headers)

    assert (reply.status, reply.error, reply.headers["Retry-After"]) == (503, "ServerBusy", "1")
    assert (await send("POST", "/People", ADA)).status == 201  # small ones go on
    assert full.used == before


async def test_a_small_body_without_memory_gets_server_busy(send, people, full):
    small = [full.take(SMALL) for _ in range(2)]

    assert (await send("POST", "/People", ADA)).error == "ServerBusy"

    full.release(small[0])
    assert (await send("POST", "/People", ADA)).status == 201


async def test_small_bodies_have_a_part_that_large_ones_cannot_take(send, people, full):
    full.release(full.used)
    held = await full.wait(100 * SMALL)  # more than all, but alone

    assert (await send("POST", "/People", ADA)).status == 201
    assert full.used == held


async def test_the_body_of_a_refused_request_is_read_as_well(send):
    reply = await send("POST", "/Tables", chunks=[b"{", b"}", b""], signed=False)

    assert reply.error == "AuthenticationFailed"
    assert "Connection" not in reply.headers


@pytest.mark.parametrize("signed", [True, False])
async def test_a_client_that_goes_away_gets_no_answer_and_changes_nothing(send, people, signed):
    body = json.dumps(ADA).encode()

    assert await send("POST", "/People", chunks=[body, None], signed=signed) is None

    assert (await send("GET", "/People")).json["value"] == []


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
        relation = (await in_thread(tables.get, (await in_thread(Account.objects.get)), people)).pk
        connection.execute(f"ALTER TABLE entity_{relation} RENAME COLUMN vals TO something_else")

    with caplog.at_level(logging.ERROR):
        reply = await send("GET", PATH)

    assert (reply.status, reply.error) == (500, "InternalError")
    assert b"vals" not in reply.body
    [logged] = caplog.records
    assert logged.request_id == reply.headers["x-ms-request-id"]
    assert (logged.user, logged.account, logged.operation) == ("key:key1", ACCOUNT, "QueryEntity")
    assert "vals" in caplog.text


async def test_refused_requests_are_logged_without_keys_and_signatures(send, people, caplog):
    with caplog.at_level(logging.INFO, "storage.protocol.table_service"):
        reply = await send("DELETE", f"{PATH}?sig=c2VjcmV0&sv=2019-02-02&sp=r", signed=False)

    assert reply.status == 403
    [logged] = caplog.records
    assert logged.request_id == reply.headers["x-ms-request-id"]
    assert (logged.user, logged.account, logged.operation) == ("", ACCOUNT, "DeleteEntity")
    assert logged.getMessage().startswith(
        f"DeleteEntity of {ACCOUNT} refused with 403 AuthenticationFailed to "
    )
    assert "c2VjcmV0" not in logged.getMessage() and "PartitionKey" not in logged.getMessage()


async def test_requests_without_a_free_lane_are_refused_as_busy(send, people, monkeypatch):
    monkeypatch.setattr(lanes, "_ACQUIRE_TIMEOUT", 0.1)
    with psycopg.connect(settings.LANES_CONNINFO) as connection:
        relation = (await in_thread(tables.get, (await in_thread(Account.objects.get)), people)).pk
        connection.execute(f"LOCK TABLE entity_{relation} IN ACCESS EXCLUSIVE MODE")
        waiting = [asyncio.create_task(send("GET", PATH)) for _ in range(2)]
        async with asyncio.timeout(60):
            blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while connection.execute(blocked).fetchone() != (2,):  # noqa: ASYNC110 - the event is PostgreSQL's
                await asyncio.sleep(0.01)

        reply = await send("PUT", PATH, {})

        assert (reply.status, reply.error) == (503, "ServerBusy")
        assert reply.headers["Retry-After"] == "1"
        connection.rollback()
    assert [reply.status for reply in await asyncio.gather(*waiting)] == [404, 404]


def test_headers_that_come_twice_are_joined_in_no_time():
    fields = [(b"h%d" % number, b"") for number in range(20_000)] + [(b"accept", b"a"), (b"accept", b"b")]

    with costs_less_than(3):
        headers = join_repeated(fields)

    assert headers[b"accept"] == b"a, b"
    assert len(headers) == 20_001
