"""Ambiguous writes: committed or not, the client gets the same answer."""

import json
from dataclasses import dataclass, field

import pytest

from storage.domain.values.kinds import AccountKind
from tests.faults.connection import Change, write_batch
from tests.protocol.test_table_service import ACCOUNT, JSON
from tests.rehearsal.rehearsing import MARK, asking, comparable, rehearsing

pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW = "(PartitionKey='p',RowKey='old')", "(PartitionKey='p',RowKey='new')"
ACL = (
    b"<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry>"
    b"<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
)
CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://{table}</AllowedOrigins>"
    b"<AllowedMethods>GET</AllowedMethods><AllowedHeaders/><ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds>"
    b"</CorsRule></Cors></StorageServiceProperties>"
)
ENTRY = (
    b'<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom" '
    b'xmlns:d="http://schemas.microsoft.com/ado/2007/08/dataservices" '
    b'xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><title/><updated>2026-01-01T00:00:00Z'
    b'</updated><author><name/></author><id/><content type="application/xml"><m:properties><d:PartitionKey>p'
    b"</d:PartitionKey><d:RowKey>new</d:RowKey><d:N>2</d:N></m:properties></content></entry>"
)
XML = {"Content-Type": "application/xml", "Accept": "application/xml"}


@dataclass(frozen=True)
class Write:
    """A request that changes something; `{table}` is a table with the entity "old"."""

    line: str
    body: object = b""
    headers: dict[str, str] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()  # form a change set, in place of a body
    refused: int | None = 409  # the same again; None if it is done again

    def request(self, table, etag):
        """Return method, path, body and headers."""
        method, path = self.line.replace("{table}", table).split(" ")
        headers = {**JSON, **self.headers}
        headers |= {name: etag for name, value in self.headers.items() if value == "{etag}"}
        if self.changes:
            changes = [Change(it.method, table, it.key, it.properties, it.if_match) for it in self.changes]
            boundary, body = write_batch(ACCOUNT, changes)
            return method, path, body, {"Content-Type": f"multipart/mixed; boundary={boundary.decode()}"}
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return method, path, body.replace(b"{table}", table.encode()), headers


def insert(row, n):
    return Change("POST", "", ("p", row), {"N": n}, "")


MIXED = (
    insert("new", 2),
    Change("MERGE", "", ("p", "old"), {"M": 3}, "*"),
    Change("PUT", "", ("p", "third"), {"N": 4}, ""),
)
KEYS = {"PartitionKey": "p", "RowKey": "new"}
ENTITIES = {
    "insert": Write("POST /{table}", {**KEYS, "N": 2}),
    "insert without an answer's body": Write(
        "POST /{table}", {**KEYS, "N": 2}, {"Prefer": "return-no-content"}
    ),
    "replace": Write("PUT /{table}" + OLD, {"M": 2}, {"If-Match": "*"}, refused=None),
    "replace of a version": Write("PUT /{table}" + OLD, {"M": 2}, {"If-Match": "{etag}"}, refused=412),
    "merge": Write("PATCH /{table}" + OLD, {"M": 2}, {"If-Match": "*"}, refused=None),
    "merge of a version": Write("MERGE /{table}" + OLD, {"M": 2}, {"If-Match": "{etag}"}, refused=412),
    "upsert that replaces": Write("PUT /{table}" + NEW, {"N": 2}, refused=None),
    "upsert that merges": Write("PATCH /{table}" + OLD, {"M": 2}, refused=None),
    "delete": Write("DELETE /{table}" + OLD, b"", {"If-Match": "*"}, refused=404),
    "delete of a version": Write("DELETE /{table}" + OLD, b"", {"If-Match": "{etag}"}, refused=404),
    "create a table": Write("POST /Tables", {"TableName": "{table}x"}),
    "delete a table": Write("DELETE /Tables('{table}')", refused=404),
    "change set": Write("POST /$batch", changes=MIXED, refused=202),
    "change set in halves": Write(
        "POST /$batch", changes=tuple(insert(f"{n:03}", n) for n in range(50)), refused=202
    ),
}
STORAGE = {
    "insert in Atom": Write(
        "POST /{table}", ENTRY, {"Content-Type": "application/atom+xml", "x-ms-version": "2013-08-15"}
    ),
    "policies": Write("PUT /{table}?comp=acl", ACL, XML, refused=None),
    "service properties": Write("PUT /?restype=service&comp=properties", CORS, XML, refused=None),
    "insert in a session": Write("POST /{table}", {**KEYS, "N": 2}, {"x-ms-consistency-level": "Session"}),
}


async def read_state(send, table, kind):
    """Return all that the writes change."""
    paths = [f"/{table}()", "/Tables"]
    if kind is AccountKind.STORAGE:
        paths += [f"/{table}?comp=acl", "/?restype=service&comp=properties"]
    return [comparable(await send("GET", path)) for path in paths]


def without_times(state):
    """Return the entities of a table in a state, without their times."""
    entities = json.loads(state[0][2]).get("value")
    return entities and [{name: it[name] for name in it if name != "Timestamp"} for it in entities]


async def fresh(send, table):
    """Make a table with an entity, and return its ETag."""
    assert (await send("POST", "/Tables", {"TableName": table})).status == 201
    made = await send("POST", f"/{table}", {"PartitionKey": "p", "RowKey": "old", "N": 1})
    return made.headers["ETag"]


async def check_write(send, write, kind, number):
    """Check a write whose answer is a timeout, or none."""
    table, twin = f"own{number}", f"twin{number}"
    etag, twin_etag = await fresh(send, table), await fresh(send, twin)
    method, path, body, headers = write.request(table, etag)
    before = await read_state(send, table, kind)

    timeout = await send(method, path, body, asking("ambiguous-unapplied", headers))
    silent = await send(method, path, body, asking("ambiguous-unapplied; answer=close", headers))
    assert [it.headers[MARK] for it in (timeout, silent)] == ["ambiguous-unapplied"] * 2
    assert await read_state(send, table, kind) == before

    answer = "close" if number % 4 == 3 else "timeout"
    applied = await send(method, path, body, asking(f"ambiguous-applied; answer={answer}", headers))
    assert applied.headers[MARK] == "ambiguous-applied"
    after = await read_state(send, table, kind)
    assert after != before
    if answer == "timeout":
        assert (applied.status, applied.deliver) == (500 if kind is AccountKind.STORAGE else 408, None)
        assert comparable(applied) == comparable(timeout)
    else:
        assert applied.deliver is silent.deliver is not None  # the same, which is given no answer

    if write.refused is not None:
        again = await send(method, path, body, asking("ambiguous-applied", headers))
        plain = await send(method, path, body, headers)
        assert (again.status, again.deliver) == (write.refused, None)
        assert MARK not in again.headers
        assert comparable(again) == comparable(plain)
        assert await read_state(send, table, kind) == after

    assert (await send(*write.request(twin, twin_etag))).status < 300
    assert without_times(after) == without_times(await read_state(send, twin, kind))


@pytest.mark.parametrize("kind", [AccountKind.STORAGE, AccountKind.COSMOS])
async def test_a_write_is_committed_whole_or_not_at_all_and_the_answers_are_the_same(kind):
    writes = ENTITIES if kind is AccountKind.COSMOS else ENTITIES | STORAGE
    async with rehearsing(kind) as (_, send):
        for number, (name, write) in enumerate(writes.items()):
            try:
                await check_write(send, write, kind, number)
            except AssertionError as failure:
                raise AssertionError(f"{name}: {failure}") from failure
