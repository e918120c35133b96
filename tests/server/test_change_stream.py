"""The change feed of a live server as server-sent events."""

import json
from contextlib import contextmanager
from uuid import uuid4

import pytest
import requests
from azure.data.tables import TableServiceClient

WAIT = 60


@pytest.fixture(scope="module")
def token(server):
    return add_reader(server)


def add_reader(live):
    """Add a user and return a token with which the changes are read."""
    name = f"robot-{uuid4().hex[:8]}"
    live.manage("user", "add", name, "--admin")
    return live.add_token(name, "feed", scope="read")


@contextmanager
def new_table(live):
    with TableServiceClient.from_connection_string(live.connection_string) as service:
        yield service.create_table(f"t{uuid4().hex}")


@pytest.fixture
def table(server):
    with new_table(server) as table:
        yield table


@contextmanager
def stream(live, token, query="", **headers):
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", **headers}
    address = f"{live.url}/ui/api/v1/accounts/{live.account}/changes{query}"
    with requests.get(address, headers=headers, stream=True, timeout=WAIT) as answer:
        yield answer


def events(answer):
    """Yield the id and the data of each event; data None: the event has only an id."""
    event = {}
    for line in answer.iter_lines(chunk_size=1):
        name, _, value = line.decode().partition(":")
        if line:
            event[name] = value.strip()
        elif "id" in event:
            yield event["id"], json.loads(event["data"]) if "data" in event else None
            event = {}
        else:
            event = {}


def changes(answer):
    return ((id_, data) for id_, data in events(answer) if data is not None)


def put(table, row, number):
    table.upsert_entity({"PartitionKey": "p", "RowKey": row, "Number": number})


def test_changes_come_as_they_happen_and_a_client_goes_on_where_it_was(server, token, table):
    query = f"?table={table.table_name}"
    with stream(server, token, query) as answer:
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.headers["Cache-Control"] == "no-store"
        result = events(answer)
        start, _ = next(result)
        put(table, "ada", 1)
        seen = [next(it for it in result if it[1] is not None)]
        put(table, "ada", 2)
        put(table, "eve", 3)
        seen += [next(it for it in result if it[1] is not None) for _ in range(2)]
    told = [(data["operation"], data["row_key"], data["after"]["Number"]) for _, data in seen]
    assert told == [("insert", "ada", 1), ("update", "ada", 2), ("insert", "eve", 3)]
    assert seen[1][1]["before"]["Number"] == 1

    # from anywhere in the middle, by header or by parameter
    for place in range(3):
        after = [start, *(id_ for id_, _ in seen)][place]
        with stream(server, token, query, **{"Last-Event-ID": after}) as answer:
            again = changes(answer)
            assert [next(again)[1] for _ in seen[place:]] == [data for _, data in seen[place:]]
    with stream(server, token, f"{query}&after={seen[-1][0]}") as answer:
        table.delete_entity("p", "eve")
        assert next(changes(answer))[1]["operation"] == "delete"


def test_refusals_are_problems_not_streams(server, token, table):
    for query, headers, status in [
        ("", {"Authorization": "Bearer nobody"}, 401),
        ("?table=nobody", {}, 404),
        ("?after=x", {}, 400),
        ("", {"Last-Event-ID": "x"}, 400),
    ]:
        with stream(server, token, query, **headers) as answer:
            assert answer.status_code == status
            assert answer.headers["Content-Type"] == "application/problem+json"
