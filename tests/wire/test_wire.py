"""One test per case of tests/wire/*.toml with its variants, each in a table of its own unless it changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from time import gmtime, strftime, time
from typing import Any
from uuid import uuid4

import pytest

from . import cases, checks
from .cases import Case, fill
from .client import Connection, Endpoint, Outgoing, Reply, write

NEW_TABLES = ("new", "new2", "new3")
READ_ONLY_TABLE = "People"
CHANGE_SET = 100  # operations
OFF = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
USUAL_PROPERTIES = (
    "<StorageServiceProperties>"
    f"<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>{OFF}</Logging>"
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>"
    f"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>{OFF}</MinuteMetrics>"
    "<Cors /></StorageServiceProperties>"
)
INSTANT = "%Y-%m-%dT%H:%M:%SZ"
TESTS = cases.load_tests()
MOMENTS = {"second_ago": -1, "hour_ago": -3600, "in_a_minute": 60, "in_an_hour": 3600}  # seconds from now


@pytest.fixture(scope="session")
def shared(connection: Connection) -> Iterator["SharedTables"]:
    shared = SharedTables(connection)
    yield shared
    shared.delete()


@pytest.mark.parametrize("variants", [pytest.param(variants, id=name) for name, variants in TESTS.items()])
def test_wire(
    variants: list[Case],
    endpoint: Endpoint,
    connection: Connection,
    shared: "SharedTables",
    request: pytest.FixtureRequest,
) -> None:
    runnable = [case for case in variants if not reason_to_skip(case, endpoint)]
    if not runnable:
        pytest.skip(reason_to_skip(variants[0], endpoint))
    if variants[0].kind == "cosmos":
        endpoint = request.getfixturevalue("cosmos_endpoint")
    if variants[0].strict:
        endpoint = request.getfixturevalue("strict_endpoint")
    if variants[0].read_only:
        endpoint = request.getfixturevalue("read_only_endpoint")
    failures = []
    for case in runnable:
        runner = Runner(case, endpoint, connection, shared)
        try:
            with runner.world():
                for step in case.steps:
                    runner.take(step)
        except AssertionError as failure:
            failures.append(f"{case.id}\n{failure}")
    assert not failures, "\n\n".join(failures)


def reason_to_skip(case: Case, endpoint: Endpoint) -> str:
    """Return why a case does not run against an endpoint; empty if it does."""
    return (case.peer if endpoint.foreign else "") or (case.local if endpoint.distributes else "")


class SharedTables:
    """The tables of cases that change nothing, made once for each given state."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names: dict[tuple[Endpoint, str], str] = {}

    def find(self, endpoint: Endpoint, case: Case) -> str | None:
        return self._names.get((endpoint, case.world))

    def keep(self, endpoint: Endpoint, case: Case, name: str) -> None:
        self._names[endpoint, case.world] = name

    def delete(self) -> None:
        for (endpoint, _), name in self._names.items():
            self._connection.send(write({"line": f"DELETE /Tables('{name}')"}, endpoint))
        self._names.clear()


class Runner:
    """The run of one case: its variables grow with the values that the steps capture."""

    def __init__(self, case: Case, endpoint: Endpoint, connection: Connection, shared: SharedTables) -> None:
        self._case = case
        self._endpoint = endpoint
        self._connection = connection
        self._shared = shared
        self._shares = case.changes_nothing and not any(map(case.mentions, (*NEW_TABLES, *MOMENTS)))
        known = shared.find(endpoint, case) if self._shares else None
        self._is_made = known is not None
        name = known or f"Wire{uuid4().hex[:12]}"
        host, port = endpoint.address
        self._variables = {
            "any": checks.ANY,
            "properties": "/?restype=service&comp=properties",
            "base": endpoint.url.rstrip("/"),
            "root": endpoint.root,
            "host": f"{host}:{port}",
            "account": endpoint.account,
            "now": formatdate(usegmt=True),
            "now_rfc850": strftime("%A, %d-%b-%y %H:%M:%S GMT", gmtime()),
            "now_asctime": strftime("%a %b %e %H:%M:%S %Y", gmtime()),
            **{name: strftime(INSTANT, gmtime(time() + away)) for name, away in MOMENTS.items()},
            "table": READ_ONLY_TABLE if case.read_only else name,
            "upper": name.upper(),
            "lower": name.lower(),
            **{new: f"{name}{new}" for new in NEW_TABLES},
            **case.variables,
        }

    @contextmanager
    def world(self) -> Iterator[None]:
        if self._case.read_only:
            yield
            return
        made = bool(self._case.given) or any(map(self._case.mentions, ("table", "upper", "lower")))
        if made and self._shares:
            with self._shared_table():
                yield
            return
        if made:
            self._make_table()
        try:
            yield
        finally:
            if self._case.mentions("properties"):
                self._send({"line": "PUT {properties}", "body": USUAL_PROPERTIES})
            if self._endpoint.foreign:  # ours ends with the tests
                for name in [*(["table"] if made else []), *filter(self._case.mentions, NEW_TABLES)]:
                    self._send({"line": f"DELETE /Tables('{{{name}}}')"})

    @contextmanager
    def _shared_table(self) -> Iterator[None]:
        """Make the table if no case before did.

        A case that fails may have changed it, so that no other case gets it.
        """
        if not self._is_made:
            self._make_table()
            self._shared.keep(self._endpoint, self._case, self._variables["table"])
        try:
            yield
        except BaseException:
            self._shared.delete()
            raise

    def _make_table(self) -> None:
        self._set_up({"line": "POST /Tables", "json": {"TableName": "{table}"}})
        for entity in self._case.given:
            self._insert(entity)

    def _insert(self, entity: Any) -> None:
        """Insert a table or JSON text; `repeat` inserts it so many times, with the number for `#`."""
        if not isinstance(entity, dict) or "repeat" not in entity:
            self._set_up({"line": "POST /{table}", "json": entity})
            return
        insert = {"line": "POST /{table}", "json": {k: v for k, v in entity.items() if k != "repeat"}}
        for start in range(0, entity["repeat"], CHANGE_SET):
            numbers = range(start, min(start + CHANGE_SET, entity["repeat"]))
            self._set_up({"line": "POST /$batch", "batch": [_numbered(insert, number) for number in numbers]})

    def _set_up(self, spec: dict[str, Any]) -> None:
        _, reply = self._send(spec)
        assert reply is not None
        assert reply.status < 300 and "odata.error" not in reply.text, f"set-up:\n{reply}"

    def _send(self, spec: dict[str, Any]) -> tuple[Outgoing, Reply | None]:
        outgoing = write(fill(spec, self._variables), self._endpoint)
        return outgoing, self._connection.send(outgoing)

    def take(self, step: dict[str, Any]) -> None:
        outgoing, reply = self._send(step["request"])
        if reply is None:
            return
        expected = fill(step["response"], self._variables)
        try:
            checks.check(reply, expected, foreign=self._endpoint.foreign)
            if "bare" not in expected and self._case.kind == "cosmos":
                checks.check_always_cosmos(reply)
            elif "bare" not in expected:
                checks.check_always(reply, outgoing, expected, foreign=self._endpoint.foreign)
            self._capture(reply, step["response"].get("capture", {}))
        except AssertionError as failure:
            sent = (outgoing.head + outgoing.body)[:3000].decode("utf-8", "replace")
            raise AssertionError(f"{failure}\n\n{sent}\n\n{reply}") from None

    def _capture(self, reply: Reply, sources: dict[str, str]) -> None:
        for name, source in sources.items():
            kind, _, key = source.partition(" ")
            value = reply.header(key) if kind == "header" else reply.json()[key]
            assert isinstance(value, str), f"nothing to capture as {name}"
            self._variables[name] = value


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {name: _numbered(item, number) for name, item in value.items()}
    return value.replace("#", f"{number:04}") if isinstance(value, str) else value
