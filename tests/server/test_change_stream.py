"""The change feed of a live server as server-sent events."""

import itertools
import json
import threading
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import psutil
import psycopg
import pytest
import requests
from azure.data.tables import TableServiceClient

from storage.server.data_folder import DataFolder
from tests.live_server import start_server
from tests.seeds import seeded
from tests.waiting import wait_for

WAIT = 60


@pytest.fixture(scope="module")
def token(server):
    return add_reader(server)


@pytest.fixture(scope="module")
def alone(scratch):
    """Start a server with one worker, which the last test ends."""
    patient = {"storage.server.http_server": {"DRAIN": 50}}  # seconds for requests in flight, in place of ten
    with start_server(seeded(scratch / "streams"), "--workers", "1", constants=patient) as live:
        yield live


@pytest.fixture(scope="module")
def token_of_alone(alone):
    return add_reader(alone)


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


@pytest.mark.long
def test_many_streams_share_a_poller_and_hold_no_thread_and_no_connection(alone, token_of_alone):
    process = psutil.Process(alone.pid)
    with ExitStack() as stack:
        table = stack.enter_context(new_table(alone))
        put(table, "warm", 0)
        with stream(alone, token_of_alone) as answer:
            next(events(answer))
        backends = connections(alone)
        threads = process.num_threads()
        answers = []
        while len(answers) < 20:  # earlier ones may not have ended yet
            answer = stack.enter_context(stream(alone, token_of_alone, f"?table={table.table_name}"))
            if answer.status_code == 200:
                answers.append(answer)
        following = [events(answer) for answer in answers]
        for stream_events in following:
            assert next(stream_events)[1] is None
        # some are of requests that have just been answered
        wait_for(lambda: process.num_threads() <= threads + 8)
        wait_for(lambda: connections(alone) <= backends + 10)  # the pool is small at first
        with stream(alone, token_of_alone) as refused:
            assert refused.status_code == 429
            assert "20 streams" in refused.json()["detail"]
        put(table, "ada", 1)
        rows = [next(data for _, data in stream_events if data)["row_key"] for stream_events in following]
        assert rows == ["ada"] * 20


def connections(live):
    folder = DataFolder(live.data).socket_folder
    with psycopg.connect(f"host={folder} user=tablero dbname=tablero") as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        return connection.execute(query).fetchone()[0]


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


@pytest.mark.long
def test_streams_end_in_order_with_the_server(alone, token_of_alone):
    """The last of these tests."""
    with ExitStack() as stack:
        opened = (stack.enter_context(stream(alone, token_of_alone)) for _ in itertools.count())
        # earlier ones may not have ended yet
        result = events(wait_for(lambda: (answer := next(opened)).status_code == 200 and answer))
        next(result)
        stopping = threading.Thread(target=alone.stop)
        stopping.start()
        list(result)  # would raise if the end of the body were missing
        stopping.join(WAIT)
    assert not alone.gave_up_requests, "the server waited for the stream"
    assert not any("Traceback" in line for line in alone.output), alone.output
