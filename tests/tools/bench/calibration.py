"""A fixed piece of work that resembles a request, to measure how fast a machine runs such code at the moment.

It parses, signs, formats and encodes with the standard library, and waits in the middle for a statement of PostgreSQL.
So what slows requests down slows it down as well: other programs in the caches, a slower clock, a hypervisor. Nothing
in it belongs to the product. Changing it invalidates every stored reference.
"""

import random
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hmac import digest
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from uuid import UUID

import orjson
from psycopg import AsyncConnection

ENTITY = {
    "PartitionKey": "p000017",
    "RowKey": "r000001234",
    "Owner": "owner-0000123",
    "Active": True,
    "Level": 7,
    "Score": 1234.25,
    "Created": "2024-03-17T11:42:07.5Z",
    "Id": "9e3779b9-7f4a-7c15-f39c-c0605cedc835",
    "Photo": b64encode(bytes(range(180))).decode(),
    "Notes": "partition key row table entity storage service " * 9,
}
BODY = orjson.dumps(ENTITY)
HEAD = (
    b"PATCH /devstoreaccount1/people(PartitionKey='p%2017',RowKey='r1')?timeout=30&$select=Owner,Score HTTP/1.1\r\n"
    b"Host: 127.0.0.1:10002\r\nx-ms-date: Thu, 26 Nov 2026 12:00:00 GMT\r\nx-ms-version: 2019-02-02\r\n"
    b"DataServiceVersion: 3.0\r\nAccept: application/json;odata=minimalmetadata\r\nIf-Match: *\r\n"
    b"Content-Type: application/json\r\nUser-Agent: calibration/1.0 (Linux)\r\n"
    b"Authorization: SharedKey devstoreaccount1:0123456789abcdef0123456789abcdef\r\n\r\n"
)
FILTER = "Score ge 12.5 and (Owner eq 'owner-7' or Level lt 9) and Created gt datetime'2024-01-01T00:00:00Z'"
TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|(datetime'[^']*')|('(?:[^']|'')*')|([A-Za-z_]\w*)|([()]))")
KEYS = re.compile(r"\(PartitionKey='((?:[^']|'')*)',RowKey='((?:[^']|'')*)'\)$")
STATEMENT = "SELECT pk, n FROM (VALUES (%s, 2)) AS t (pk, n)"
HEAP = [{"number": number, "text": str(number)} for number in range(12_000)]
MEMBERS = random.Random(20170830).sample(HEAP, 300)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Property:
    name: str
    type: str
    value: object
    size: int = 0


async def work(connection: AsyncConnection | None) -> None:
    """Do it once: about as much as a request that changes an entity; without a connection, what does not wait."""
    headers = read_head(HEAD)
    path, signature = sign(headers)
    row = await encode(BODY)
    if connection is not None:
        await connection.execute(STATEMENT, ("p",), prepare=True)
    read_members(MEMBERS)
    tokens = read_filter(FILTER)
    write_answer(b"".join((path.encode(), signature, row, b" ".join(tokens))))


def read_members(members: list[dict[str, Any]]) -> int:
    """Read as many objects as a request does with its code: they stay in a cache unless another program takes it."""
    return sum(member["number"] + len(member["text"]) for member in members)


def read_head(head: bytes) -> dict[str, str]:
    first, *lines = head[:-4].split(b"\r\n")
    verb, target, version = first.decode("ascii").split(" ")
    headers = {":verb": verb, ":target": target, ":version": version}
    for line in lines:
        name, _, value = line.partition(b":")
        headers[name.strip().lower().decode("ascii")] = value.strip().decode("latin-1")
    return headers


def sign(headers: dict[str, str]) -> tuple[str, bytes]:
    parts = urlsplit(headers[":target"])
    options = {name.lower(): value for name, value in parse_qsl(parts.query)}
    result = KEYS.search(unquote(parts.path))
    assert result is not None
    keys = tuple(key.replace("''", "'") for key in result.groups())
    canonical = "\n".join(
        (
            headers[":verb"],
            headers.get("content-type", ""),
            headers["x-ms-date"],
            quote(parts.path, safe="/()',="),
            *(f"{name}:{options[name]}" for name in sorted(options)),
        )
    )
    return f"{parts.path}{keys!r}", b64encode(digest(b"key" * 20, canonical.encode(), "sha256"))


async def encode(body: bytes) -> bytes:
    members = orjson.loads(body)
    properties = [await classify(name, value) for name, value in members.items()]
    total = sum(property.size for property in properties)
    moment = EPOCH + timedelta(microseconds=1_700_000_000_000_000 + total)
    texts = [
        f'"{property.name}@odata.type":"{property.type}","{property.name}":{property.value!r}'
        for property in properties
    ]
    typed = {property.name: f"{property.type[0]}{property.value}" for property in properties}
    return (
        b"{"
        + ",".join(texts).encode()
        + f',"Timestamp":"{moment.isoformat()}"}}'.encode()
        + orjson.dumps(typed)
    )


async def classify(name: str, value: object) -> Property:
    result = Property(name, "Edm.String", value)
    match value:
        case bool():
            result = replace(result, type="Edm.Boolean", value="true" if value else "false")
        case int():
            result = replace(result, type="Edm.Int32" if -(2**31) <= value < 2**31 else "Edm.Int64")
        case float():
            result = replace(result, type="Edm.Double", value=repr(value))
        case str() if name == "Created":
            moment = datetime.fromisoformat(value)
            result = replace(result, type="Edm.DateTime", value=moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        case str() if name == "Id":
            result = replace(result, type="Edm.Guid", value=str(UUID(value)))
        case str() if name == "Photo":
            result = replace(result, type="Edm.Binary", value=b64encode(b64decode(value)).decode())
    return replace(result, size=2 * len(name) + len(str(result.value)))


def read_filter(text: str) -> list[bytes]:
    at, tokens = 0, []
    while at < len(text):
        result = TOKEN.match(text, at)
        assert result is not None
        tokens.append(result[result.lastindex or 0].lower().encode())
        at = result.end()
    return tokens


def write_answer(body: bytes) -> bytes:
    headers = {
        "Content-Type": "application/json",
        "ETag": f"W/\"datetime'{quote(str(len(body)))}'\"",
        "Server": "x",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return b"HTTP/1.1 204 No Content\r\n" + head.encode("latin-1") + b"\r\n" + body
