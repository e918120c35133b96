"""Reports on real clients of a live server, and on the requests that were recorded."""

import http.client
import json
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    UpdateMode,
    generate_account_sas,
)

from storage.accounts import account_settings, accounts
from storage.core.rehearsals import Exchange
from storage.models import RehearsalClient, RehearsedRequest
from storage.rehearsal import rehearsals, report
from storage.rehearsal.findings import FindingKind, Sdk, find_sdk
from storage.rehearsal.records import dump_exchange
from storage.rehearsal.report import dump_report, make_report
from tablero_server.testing import Service

ROWS = [f"{number:02}" for number in range(20)]


# real clients

RULES = [
    {"name": "short", "effect": "short-page", "when": {"agent": "pager"}},
    {
        "name": "lost",
        "effect": "ambiguous-applied",
        "when": {"agent": "inserter", "operations": ["InsertEntity"], "nth": [2]},
    },
    {
        "name": "changed",
        "effect": "ambiguous-applied",
        "when": {"agent": "changer", "operations": ["UpdateEntity", "MergeEntity"], "nth": [1]},
    },
    {
        "name": "lost too",
        "effect": "ambiguous-applied",
        "when": {"agent": "renamer", "operations": ["InsertEntity"], "nth": [3]},
    },
    {"name": "busy", "effect": "throttle", "when": {"agent": "hammer", "nth": [1, 2, 3]}},
    {"name": "once", "effect": "throttle", "when": {"agent": "patient", "nth": [2]}},
    {"name": "ignored", "effect": "error", "when": {"agent": "careless", "every": 2}},
    {"name": "late", "effect": "stale-secondary", "when": {"agent": "secondary"}},
]


@pytest.fixture(scope="module")
def token(server):
    server.manage("user", "add", "reporter", "--admin")
    return server.add_token("reporter", "rehearsals")


@pytest.fixture
def account(server, token, tmp_path):
    service = Service(server.url, token, str(tmp_path))
    account = service.create_account()
    with connect(account, "setup") as table:
        table.create_table()
        for row in ROWS:
            table.create_entity({"PartitionKey": "p", "RowKey": row, "Number": 1})
    yield account
    service.close()


def connect(account, agent, **options):
    """Return a client of the Python SDK, with its default retries, under a name."""
    return TableClient.from_connection_string(
        account.connection_string, table_name="people", user_agent=agent, **options
    )


class RawClient:
    """Client over plain HTTP with a SAS."""

    def __init__(self, account, agent, *, expires_in=timedelta(hours=1)):
        self.agent = agent
        self.account = account.name
        sas = generate_account_sas(
            AzureNamedKeyCredential(account.name, account.key),
            resource_types=ResourceTypes(object=True),
            permission=AccountSasPermissions(read=True, write=True, update=True, add=True),
            expiry=datetime.now(UTC) + expires_in,
        )
        self.sas = sas
        self.connection = http.client.HTTPConnection(account.endpoint.split("/")[2], timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send(self, method, row, body=None, suffix=""):
        key = quote(f"(PartitionKey='p',RowKey='{row}')", safe="()',=")
        headers = {"User-Agent": self.agent, "Accept": "application/json", "x-ms-version": "2019-02-02"}
        if body is not None:
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        target = f"/{self.account}{suffix}/people{key}?{self.sas}"
        self.connection.request(method, target, body, headers)
        response = self.connection.getresponse()
        response.read()
        return response.status


def change(client, entity):
    """Replace an entity on the condition that it has not changed."""
    client.update_entity(
        {**entity, "Number": 2},
        mode=UpdateMode.REPLACE,
        etag=entity.metadata["etag"],
        match_condition=MatchConditions.IfNotModified,
    )


def insert_with_new_key(client, properties):
    """Insert an entity under a key that each attempt makes."""
    while True:
        try:
            return client.create_entity({"PartitionKey": "q", "RowKey": uuid4().hex, **properties})
        except HttpResponseError:
            continue


def kinds(report):
    """Return the kinds of faults of each client, by the first word of its user agent."""
    return {
        client["agent"].partition(" ")[0]: list(
            dict.fromkeys(it["kind"] for it in client["findings"] if it["severity"] == "fault")
        )
        for client in report["clients"]
    }


def test_faults_of_real_clients(account):
    with account.rehearse(rules=RULES, seed=7) as run, ExitStack() as clients:
        pager = clients.enter_context(connect(account, "pager"))
        for _ in range(3):
            list(next(pager.list_entities(results_per_page=15).by_page()))

        inserter = clients.enter_context(connect(account, "inserter"))
        conflicts = 0
        for row in ("a", "b", "c"):
            try:
                inserter.create_entity({"PartitionKey": "q", "RowKey": row})
            except ResourceExistsError:
                conflicts += 1
        assert conflicts == 1

        changer = clients.enter_context(connect(account, "changer"))
        entity = changer.get_entity("p", "01")
        with pytest.raises(ResourceModifiedError):
            change(changer, entity)
        changer.get_entity("p", "02")

        renamer = clients.enter_context(connect(account, "renamer", retry_total=0))
        for number in range(6):
            insert_with_new_key(renamer, {"Number": number})

        careless = clients.enter_context(connect(account, "careless", retry_total=0))
        for row in ROWS[:10]:
            try:
                careless.get_entity("p", row)
            except HttpResponseError:
                continue

        hammer = clients.enter_context(RawClient(account, "hammer"))
        assert [hammer.send("GET", "00") for _ in range(4)] == [503, 503, 503, 200]

        reader = clients.enter_context(connect(account, "reader"))
        entity = reader.get_entity("p", "00")
        writer = clients.enter_context(connect(account, "writer"))
        writer.update_entity({"PartitionKey": "p", "RowKey": "00", "Other": 2})
        reader.upsert_entity({**entity, "Number": 2}, mode=UpdateMode.REPLACE)

        secondary = clients.enter_context(RawClient(account, "secondary"))
        assert secondary.send("PUT", "new", {"Number": 1}) == 204
        assert secondary.send("GET", "new", suffix="-secondary") == 404

        expired = clients.enter_context(RawClient(account, "expired", expires_in=timedelta(seconds=-60)))
        assert [expired.send("GET", "00") for _ in range(4)] == [403] * 4
    assert kinds(run.report) == {
        "pager": ["ignored-token"],
        "inserter": ["insert-repeated"],
        "changer": ["update-repeated-412"],
        "renamer": ["inserted-twice"],
        "careless": ["not-retried"],
        "hammer": ["retried-at-once", "retried-before-retry-after"],
        "reader": ["lost-update"],
        "writer": [],
        "secondary": ["stale-read"],
        "expired": ["expired-sas"],
    }
    assert not run.held
    with pytest.raises(AssertionError, match="EntityAlreadyExists"):
        run.check()
    kept = {it["request_id"] for it in run.requests()}
    assert {request for it in run.findings for request in it["requests"]} <= kept


def test_no_faults_of_careful_clients(account):
    with account.rehearse(rules=RULES, seed=7) as run, ExitStack() as clients:
        pager = clients.enter_context(connect(account, "pager"))
        assert [entity["RowKey"] for entity in pager.list_entities(results_per_page=15)] == ROWS

        inserter = clients.enter_context(connect(account, "inserter"))
        for row in ("a", "b", "c"):
            try:
                inserter.create_entity({"PartitionKey": "q", "RowKey": row, "Number": 5})
            except ResourceExistsError:
                assert inserter.get_entity("q", row)["Number"] == 5

        changer = clients.enter_context(connect(account, "changer"))
        entity = changer.get_entity("p", "01")
        with pytest.raises(ResourceModifiedError):
            change(changer, entity)
        assert changer.get_entity("p", "01")["Number"] == 2

        patient = clients.enter_context(connect(account, "patient"))
        for row in ROWS[:5]:
            patient.get_entity("p", row)

        careless = clients.enter_context(connect(account, "careless"))  # with retries
        for row in ROWS[:3]:
            careless.get_entity("p", row)

        secondary = clients.enter_context(RawClient(account, "secondary"))
        assert secondary.send("PUT", "new", {"Number": 1}) == 204
        assert secondary.send("GET", "new", suffix="-secondary") == 404
        assert secondary.send("GET", "new") == 200
    assert run.held, run.findings
    assert run.report["badge"] == f"held under {run.name} (seed 7)"
    run.check()


# reports on recorded requests


@pytest.fixture
def rehearse(transactional_db):
    row = accounts.add("acme")
    account_settings.change(row, may_rehearse=True)
    row.refresh_from_db()

    def rehearse(*clients, stops=True):
        """Start a rehearsal with some clients, which are their names and requests; return it."""
        rehearsal = rehearsals.start(row, "throttled", seed=3)
        for agent, exchanges in clients:
            record(rehearsal, agent, exchanges)
        if stops:
            rehearsals.stop(rehearsal)
        return rehearsal

    return rehearse


def record(rehearsal, agent, exchanges):
    client = RehearsalClient.objects.create(
        rehearsal=rehearsal,
        agent=agent,
        credential="authenticated:key1",
        requests=len(exchanges),
        matches=[0],
    )
    began = rehearsal.started_at.timestamp()
    RehearsedRequest.objects.bulk_create(
        RehearsedRequest(
            rehearsal=rehearsal,
            client=client,
            number=number,
            at=rehearsal.started_at,
            request_id=UUID(int=client.pk * 1000 + number),
            exchange=json.loads(dump_exchange(set_time(exchange, began + number / 100))),
        )
        for number, exchange in enumerate(exchanges, start=1)
    )


def set_time(exchange, began):
    exchange.began, exchange.ended = began, began + 0.005
    return exchange


def read(row, **facts):
    known = {"operation": "QueryEntity", "method": "GET", "table": "people", "partition": "p", "row": row}
    return Exchange(**{**known, "status": 200, **facts})


def careless():
    """Return requests. One failed and was not sent again."""
    busy = read("busy", status=503, error="ServerBusy", rules=["throttle"], faulted=True)
    return [busy, *(read(str(number)) for number in range(8))]


def impatient():
    """Return requests whose client closed the connection."""
    return [read("a"), read("b", status=0), read("c")]


def agents_and_kinds(findings):
    return [(agent, kind.value) for agent, kind in findings]


def test_report_and_comparison(rehearse):
    first = rehearse(("old", careless()), ("both", careless()))
    second = rehearse(("both", careless()), ("new", impatient()))
    made = make_report(second)
    assert [(it.agent, it.requests, it.faulted) for it in made.clients] == [("both", 9, 1), ("new", 3, 0)]
    assert (made.summary.requests, made.summary.faulted, made.is_final, made.held) == (12, 1, True, False)
    assert made.comparison is not None and made.comparison.rehearsal == first
    assert agents_and_kinds(made.comparison.new) == [("new", "gave-up")]
    assert agents_and_kinds(made.comparison.gone) == [("old", "not-retried")]
    assert agents_and_kinds(made.comparison.kept) == [("both", "not-retried")]
    written = json.loads(json.dumps(dump_report(made)))
    assert written["compared_with"]["id"] == first.pk
    assert written["clients"][0]["findings"][0]["kind"] == "not-retried"
    assert written["badge"] == ""


def test_verdict(rehearse):
    assert make_report(rehearse(("notes only", impatient()))).badge == "held under throttled (seed 3)"
    # nothing was asked for, so nothing is known
    assert not make_report(rehearse()).held
    # not yet
    running = make_report(rehearse(("careful", [read("a")]), stops=False))
    assert running.held and not running.is_final and running.badge == ""


def test_requests_that_were_not_read(rehearse, monkeypatch):
    """Find nothing that later requests could disprove."""
    monkeypatch.setattr(report, "REQUESTS_LIMIT", 2)
    monkeypatch.setattr(report, "LEAST_REQUESTS", 2)
    made = make_report(rehearse(("careless", careless())))
    assert made.summary.requests == 9
    assert made.clients[0].findings == []


def test_a_report_that_takes_long_is_used_again(rehearse, monkeypatch):
    rehearsal = rehearse(("careless", careless()), stops=False)
    first = make_report(rehearsal).clients
    record(rehearsal, "impatient", impatient())
    monkeypatch.setattr(report, "_LONG", 0)
    monkeypatch.setattr(report, "_TIMES", 1e9)
    monkeypatch.setattr(report, "_recent", {})
    second = make_report(rehearsal).clients
    assert (len(first), len(second)) == (1, 2)
    record(rehearsal, "late", impatient())
    assert make_report(rehearsal).clients == second
    rehearsals.stop(rehearsal)
    assert len(make_report(rehearsal).clients) == 3


def test_each_kind_is_described():
    for kind in FindingKind:
        assert kind.label


@pytest.mark.parametrize(
    ("agent", "sdk"),
    [
        ("azsdk-python-data-tables/12.7.0 Python/3.13", Sdk.PYTHON),
        ("my-app azsdk-js-data-tables/13.3.0 core-rest-pipeline/1.2 Node/22", Sdk.JAVASCRIPT),
        ("azsdk-net-Data.Tables/12.9.1 (.NET 9.0.0; Linux)", Sdk.DOTNET),
        ("azsdk-go-aztables/v1.3.0 (go1.23; linux)", Sdk.GO),
        ("azsdk-java-azure-data-tables/12.5.4 (21; Linux)", Sdk.JAVA),
        ("curl/8.0", Sdk.OTHER),
    ],
)
def test_sdk_of_a_user_agent(agent, sdk):
    assert find_sdk(agent) is sdk
