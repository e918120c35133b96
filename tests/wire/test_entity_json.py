"""The JSON of an entity to the byte, whatever the entity and whichever way it is read.

One line; each annotation directly before its property; after an insert the properties as they were sent, after any
other write sorted by name, ordinal, in storage accounts, and at their places in Cosmos accounts. Recorded answers of
the service have it so: azure-sdk-for-python, azure-data-tables, test_insert_or_merge_entity_with_existing_entity and
others; test_merge_entity of its Cosmos tests.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.examples import of_usual

from . import batches
from .client import Connection, Endpoint, Reply, write

EXAMPLES = 6


class Value(NamedTuple):
    """A value as it is sent and, in either kind of account, answered: JSON texts, and the type if it must be told."""

    type: str | None
    sent: str
    storage: str
    cosmos: str


def told(type_: str | None, text: str) -> Value:
    return Value(type_, text, text, text)


def time(text: str, digits: str) -> Value:
    short = f"{text}.{digits.rstrip('0')}".removesuffix(".")
    return Value("Edm.DateTime", f'"{text}.{digits}Z"', f'"{short}Z"', f'"{text}.{digits}Z"')


def string(text: str) -> Value:
    escaped = json.dumps(text)
    plain = json.dumps(text, ensure_ascii=False)
    for code in (0x7F, 0x85, 0x2028, 0x2029, *range(0xD800, 0xE000)):
        if chr(code) in plain:
            plain = plain.replace(chr(code), f"\\u{code:04x}")
    return Value(None, escaped, escaped, plain)


VALUES = st.one_of(
    strategies.texts.map(string),
    st.booleans().map(lambda value: told(None, json.dumps(value))),
    st.integers(-(2**31), 2**31 - 1).map(lambda value: told(None, str(value))),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: told("Edm.Int64", f'"{value}"')),
    st.floats(-1e6, 1e6).filter(lambda it: it == 0 or abs(it) > 1e-3).map(lambda it: told(None, repr(it))),
    st.sampled_from(['"NaN"', '"Infinity"', '"-Infinity"']).map(lambda text: told("Edm.Double", text)),
    st.builds(
        time,
        st.datetimes()
        .filter(lambda it: it.year > 1700)
        .map(lambda it: it.replace(microsecond=0).isoformat()),
        st.integers(0, 9_999_999).map(lambda it: f"{it:07}"),
    ),
    st.uuids().map(lambda it: told("Edm.Guid", f'"{it}"')),
    st.sampled_from(['""', '"AP8="', '"AQID"']).map(lambda text: told("Edm.Binary", text)),
)
ENTITIES = st.dictionaries(
    strategies.names.filter(lambda name: name not in strategies.SYSTEM and name.lower() != "etag"),
    VALUES,
    max_size=7,
)
JSON = "application/json;odata="


def members(entity: dict[str, Value], kind: str, *, annotations: bool = True) -> str:
    """Return the properties as an answer has them, each preceded by a comma."""
    written = []
    for name, value in entity.items():
        quoted = json.dumps(name, ensure_ascii=kind == "storage")
        if annotations and value.type is not None:
            written.append(f',{quoted[:-1]}@odata.type":"{value.type}"')
        written.append(f",{quoted}:{value.cosmos if kind == 'cosmos' else value.storage}")
    return "".join(written)


def sent(entity: dict[str, Value], row: str) -> str:
    keys = f'"PartitionKey":"p","RowKey":"{row}"'
    return (
        "{"
        + keys
        + members({name: it._replace(storage=it.sent) for name, it in entity.items()}, "storage")
        + "}"
    )


def ordinal(entity: dict[str, Value]) -> dict[str, Value]:
    return {name: entity[name] for name in sorted(entity, key=lambda it: it.encode("utf-16-be"))}


def replaced(entity: dict[str, Value], kind: str) -> dict[str, Value]:
    """Return an entity as any write other than an insert stores it, also an upsert that inserted it."""
    return entity if kind == "cosmos" else ordinal(entity)


def merged(old: dict[str, Value], new: dict[str, Value], kind: str) -> dict[str, Value]:
    return {**old, **new} if kind == "cosmos" else ordinal({**old, **new})


class Table:
    """A table of an account, and what each way of reading an entity answers."""

    def __init__(self, connection: Connection, endpoint: Endpoint, kind: str) -> None:
        self.connection, self.endpoint, self.kind = connection, endpoint, kind
        self.name = f"bytes{uuid4().hex[:12]}"

    def send(self, line: str, **spec: Any) -> Reply:
        reply = self.connection.send(write({"line": line, **spec}, self.endpoint))
        assert reply is not None
        assert reply.status < 300, reply
        return reply

    def row(self, row: str) -> str:
        return f"/{self.name}(PartitionKey='p',RowKey='{row}')"

    def whole(self, row: str, properties: str, ticks: str, etag: str, level: str, *, alone: bool) -> str:
        """Return an entity that has these members, with its control information."""
        table, base, keys = self.name, self.endpoint.url.rstrip("/"), f'"PartitionKey":"p","RowKey":"{row}"'
        identity = f'"odata.type":"{self.endpoint.account}.{table}","odata.id":"{base}{self.row(row)}",'
        link, etag = f'"odata.editLink":"{self.row(row)[1:]}",', f'"odata.etag":{json.dumps(etag)},'
        time = (
            '"Timestamp@odata.type":"Edm.DateTime",' if level == "full" else ""
        ) + f'"Timestamp":"{ticks}"'
        if self.kind == "cosmos":
            context = f'"odata.metadata":"{base}/{table}/$metadata#{table}/@Element",' if alone else ""
            control = {"no": "", "minimal": context + etag, "full": identity + link + context + etag}[level]
            return f"{{{control}{keys}{properties},{time}}}"
        context = f'"odata.metadata":"{base}/$metadata#{table}/@Element",' if alone else ""
        control = {"no": "", "minimal": context + etag, "full": context + identity + etag + link}[level]
        return f"{{{control}{keys},{time}{properties}}}"

    def check_echo(self, reply: Reply, row: str, entity: dict[str, Value]) -> None:
        """Compare what an insert has answered."""
        ticks, etag = json.loads(reply.body)["Timestamp"], reply.header("ETag") or ""
        written = members(entity, self.kind)
        assert reply.text == self.whole(row, written, ticks, etag, "minimal", alone=True)

    def check(self, row: str, entity: dict[str, Value]) -> None:
        """Read an entity in all ways."""
        for level in ("minimal", "no", "full"):
            written = members(entity, self.kind, annotations=level != "no")
            accept = {"Accept": f"{JSON}{level}metadata"}
            one = self.send(f"GET {self.row(row)}", headers=accept)
            etag, ticks = one.header("ETag") or "", json.loads(one.body)["Timestamp"]
            alone = self.whole(row, written, ticks, etag, level, alone=True)
            assert one.text == alone
            page = self.send(f"GET /{self.name}?$filter=RowKey%20eq%20'{row}'", headers=accept).text
            within = self.whole(row, written, ticks, etag, level, alone=False)
            metadata = f'"odata.metadata":"{self.endpoint.url.rstrip("/")}/$metadata#{self.name}"'
            if level == "no":
                assert page == f'{{"value":[{within}]}}'
            elif self.kind == "cosmos":
                assert page == f'{{"value":[{within}],{metadata}}}'
            else:
                assert page == f'{{{metadata},"value":[{within}]}}'
            in_batch = batches.read(
                self.send("POST /$batch", batch=[{"line": f"GET {self.row(row)}", "headers": accept}])
            )
            assert [part.text for part in in_batch] == [alone]
            then = self.send(f"GET {self.row(row)}", headers={**accept, "x-tablero-as-of": ticks})
            assert then.text == alone
        if entity:
            selected = self.send(f"GET {self.row(row)}", query={"$select": ",".join(entity)})
            assert selected.text.endswith(f"{members(entity, self.kind)}}}")


@pytest.fixture(params=["storage", "cosmos"])
def table(request: pytest.FixtureRequest, connection: Connection, endpoint: Endpoint) -> Iterator[Table]:
    if endpoint.foreign:
        pytest.skip("other servers have other orders")
    kind = request.param
    result = Table(
        connection, request.getfixturevalue("cosmos_endpoint") if kind == "cosmos" else endpoint, kind
    )
    result.send("POST /Tables", json={"TableName": result.name})
    yield result
    result.send(f"DELETE /Tables('{result.name}')")


@given(ENTITIES, ENTITIES)
@settings(max_examples=of_usual(EXAMPLES), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_entity_is_answered_as_the_service_writes_it(
    table: Table, first: dict[str, Value], second: dict[str, Value]
) -> None:
    rows = [uuid4().hex for _ in range(4)]
    echo = table.send(f"POST /{table.name}", json=sent(first, rows[0]))
    table.check_echo(echo, rows[0], first)
    changes = [{"line": f"POST /{table.name}", "json": sent(first, row)} for row in rows[1:3]]
    for part, row in zip(batches.read(table.send("POST /$batch", batch=changes)), rows[1:3], strict=True):
        table.check_echo(part, row, first)
    table.check(rows[0], first)

    any_version = {"If-Match": "*"}
    table.send(f"MERGE {table.row(rows[0])}", json=sent(second, rows[0]), headers=any_version)
    table.check(rows[0], merged(first, second, table.kind))
    table.send(f"PUT {table.row(rows[0])}", json=sent(first, rows[0]), headers=any_version)
    table.check(rows[0], replaced(first, table.kind))
    changes = [
        {"line": f"MERGE {table.row(rows[1])}", "json": sent(second, rows[1])},
        {"line": f"PUT {table.row(rows[2])}", "json": sent(second, rows[2])},
        {"line": f"MERGE {table.row(rows[3])}", "json": sent(second, rows[3])},
    ]
    table.send("POST /$batch", batch=changes)
    table.check(rows[1], merged(first, second, table.kind))
    for row in rows[2:]:
        table.check(row, replaced(second, table.kind))
