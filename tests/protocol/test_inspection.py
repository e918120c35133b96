"""The inspector says what the server does: the same text is inspected, and sent."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from storage.access import policies
from storage.access.inspection import facts
from storage.accounts import accounts, declarations
from storage.accounts.accounts import NewAccount
from storage.accounts.declarations import AccountKeys
from storage.domain.access.policies import SignedIdentifier, read_policy
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.inspector import inspect
from storage.models import Account, BlockedSas
from storage.runtime.threads import in_thread
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from tests import mistakes
from tests.mistakes import ACCOUNT, ACCOUNT_TOKEN, FIRST, OLD, OTHER, SECOND, TABLE_TOKEN, Request
from tests.protocol.test_table_service import call, running

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "tables.example.org:10002"
OPEN = {name: value for name, value in TABLE_TOKEN.items() if name != "sip"}  # good from everywhere
OPEN_ACCOUNT = {name: value for name, value in ACCOUNT_TOKEN.items() if name != "sip"}
BLOCKED = {**OPEN, "sp": "d"}
STALE = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""  # no request changes what the next one finds


def make_accounts():
    account = accounts.add(ACCOUNT, NewAccount(OLD, SECOND))
    accounts.rotate(ACCOUNT, 1)
    declarations.ensure([AccountKeys(ACCOUNT, FIRST)])
    accounts.add("other", NewAccount(OTHER))
    table = tables.create(account, "People")
    for key in (EntityKey("a", "0"), EntityKey("a", "1"), EntityKey("c", "")):
        run(sql.change(relation_name(table.pk), Insert(Entity(key, {}))))
    policies.replace_by_name(
        account, "people", [SignedIdentifier("readers", read_policy(None, "2099-01-01", "r"))]
    )
    fingerprint = mistakes.fingerprint_of(BLOCKED)
    BlockedSas.objects.create(account=account, fingerprint=fingerprint)


def requests():
    """Yield valid and invalid requests: by keys in both schemes, and by tokens with and without the permission."""
    headers = {"x-ms-version": "2019-02-02", "If-Match": STALE}
    plain = Request("GET", f"http://{HOST}/{ACCOUNT}/People", headers)
    for _, make in mistakes.OF_REQUESTS:
        yield make(dated(plain))
    yield mistakes.sign(dated(plain))
    yield mistakes.sign_lite(dated(replace(plain, url=plain.url + "?comp=acl")))
    for fields, cases in (
        (TABLE_TOKEN, mistakes.OF_TABLE_TOKENS),
        (ACCOUNT_TOKEN, mistakes.OF_ACCOUNT_TOKENS),
    ):
        for _, make in cases:
            yield with_token(plain, make(fields))
    for change in CHANGES:
        fields = {name: value for name, value in {**OPEN, **change}.items() if value}
        yield with_token(plain, mistakes.good(fields))
    yield with_token(plain, mistakes.good(BLOCKED))
    for method, path in REACHED:
        for fields in (OPEN, OPEN_ACCOUNT):
            yield with_token(replace(plain, method=method, url=f"http://{HOST}{path}"), mistakes.good(fields))
    for query in ("sv=2019-02-02&tn=people&sp=x&se=2099-01-01&sig=a", "sig=a", "sv=2019-02-02&sig=a&sig=b"):
        yield with_token(plain, query)


CHANGES = (
    {"se": "2020-01-01"},
    {"st": "2098-01-01T00:00:00Z"},
    {"sip": "198.51.100.1"},
    {"spr": "https"},
    {"si": "readers"},
    {"si": "nobody"},
    {"si": "readers", "se": "", "sp": "", "st": ""},
    {"tn": "gone"},
    {"sp": "a"},
    {"sv": "2012-02-12", "spr": "", "sp": "a"},
)
REACHED = (
    ("GET", "/acme/People(PartitionKey='a',RowKey='1')"),
    ("GET", "/acme/People(PartitionKey='a',RowKey='0')"),
    ("GET", "/acme/people(PartitionKey='c',RowKey='')"),
    ("GET", "/acme/Orders"),
    ("GET", "/acme/Tables"),
    ("GET", "/acme/Tables('People')"),
    ("GET", "/acme/People?comp=acl"),
    ("GET", "/acme/?restype=service&comp=properties"),
    ("POST", "/acme-secondary/People"),
    ("GET", "/acme/People/x"),
    ("GET", "/other/People"),
    ("DELETE", "/acme/People(PartitionKey='a',RowKey='1')"),
)


def dated(request):
    return request.having(x_ms_date=f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S GMT}")


def with_token(request, query):
    return replace(request, url=request.url + ("&" if "?" in request.url else "?") + query)


def said(request):
    """Return the inspector's verdict, or None when the request is authorized."""
    known = facts(Account.objects.all(), datetime.now(UTC), scheme="http", host=HOST, client="")
    verdict = inspect(request.as_http(), known).verdict
    if verdict.error is None:
        return None
    return verdict.status, verdict.error.code, verdict.error.text, verdict.detail


async def answered(service, request):
    """Return the server's verdict on everything about access."""
    parts = urlsplit(request.url)
    fields = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    fields.append((b"host", parts.netloc.encode()))
    answer = await call(service, request.method, parts.path.encode(), parts.query.encode(), fields, [b""])
    if answer.status < 400 or answer.error in LET_IN:
        return None
    told = {element.tag.rpartition("}")[2]: element.text for element in ElementTree.fromstring(answer.body)}
    message = told["message"].partition("\nRequestId:")[0]
    return answer.status, told["code"], message, told.get("AuthenticationErrorDetail", "")


LET_IN = {"TableNotFound", "InvalidHeaderValue", "MediaTypeNotSupported", "UpdateConditionNotSatisfied"}


async def test_the_verdict_is_what_the_server_answers():
    await in_thread(make_accounts)
    seen = set()
    async with running() as service:
        for request in requests():
            second, expected, verdict = None, None, None
            while second != int(time.time()):  # details name the second; what is sent again changed nothing
                second = int(time.time())
                expected = await answered(service, request)
                verdict = await in_thread(said, request)
            assert verdict == expected, request
            seen.add(expected and expected[:2])
    assert seen >= {
        None,
        (400, "InvalidAuthenticationInfo"),
        (400, "InvalidUri"),
        (403, "AuthenticationFailed"),
        (403, "AuthorizationFailure"),
        (403, "AuthorizationPermissionMismatch"),
        (403, "AuthorizationProtocolMismatch"),
        (403, "AuthorizationSourceIPMismatch"),
        (403, "InsufficientAccountPermissions"),
        (404, "ResourceNotFound"),
    }
