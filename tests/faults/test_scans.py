"""Tables and entities so large that a careless server would take its time, or the memory of the machine."""

import select
import socket
import time
from contextlib import suppress
from statistics import median
from urllib.parse import quote

import psutil
import psycopg
import pytest

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.server.data_folder import DataFolder
from storage.sql.entities import written
from storage.sql.relations import relation_name
from tests.faults.connection import Connection, Request
from tests.faults.crowd import PATIENCE, Crowd
from tests.faults.memory import MEGABYTE, growth_of

pytestmark = pytest.mark.long

ROWS = 80_000
PARTITIONS = 20
PAGE_SECONDS = 30.0  # on a machine that is slow, or busy with something else; five on others
SCANS = 5  # one more than a server runs at the same time
PAGE_BYTES = 4 * MEGABYTE


@pytest.fixture(scope="module")
def large(server):
    """Make a table of many small entities."""
    text = EdmValue(Edm.STRING, "a text of some length")
    keys = (EntityKey(*key_of(number)) for number in range(ROWS))
    load(
        server, "large", (Entity(key, {"n": EdmValue(Edm.INT32, n), "s": text}) for n, key in enumerate(keys))
    )
    return "large"


def key_of(number):
    return f"p{number % PARTITIONS:02}", f"{number // PARTITIONS:06}"


def load(server, table, entities):
    """Create the table and fill it past the protocol, which would take long."""
    with Connection(server) as connection:
        assert connection.create_table(table).status == 204
        assert not any(connection.pages(table, ""))  # the first use makes the relation
    with psycopg.connect(database(server), autocommit=True) as session, session.cursor() as cursor:
        result = cursor.execute("SELECT id FROM storage_table WHERE name = %s", (table,)).fetchone()
        assert result is not None
        relation = relation_name(result[0])
        with cursor.copy(f"COPY {relation} (pk, rk, ts, props, anns, vals) FROM STDIN") as copy:
            for number, entity in enumerate(entities):
                projection, content = written(entity)
                copy.write_row((*entity.key, 17_000_000_000_000_000 + number, projection, "", content))
        cursor.execute(f"ANALYZE {relation}")


def database(server) -> str:
    return f"host={DataFolder(server.data).socket_folder} dbname=tablero user=tablero"


def matching_nothing(clauses):
    """Return a filter that no index serves, and whose cost for each entity grows with its clauses."""
    return " or ".join(f"(n gt {ROWS + n} or n lt {-n} or s gt 'x{n}')" for n in range(1, clauses))


def timed_pages(connection, table, condition):
    """Entities and seconds of each page."""
    pages = connection.pages(table, f"$filter={quote(condition)}")
    while True:
        began = time.monotonic()
        page = next(pages, None)
        if page is None:
            return
        yield page, time.monotonic() - began


def test_an_unindexed_filter_ends_in_bounded_steps(server, large):
    """Only the last entity matches, so every page before the last has nothing but a continuation token."""
    with Connection(server) as connection, growth_of(server.pid) as growth:
        for clauses in (
            40,
            120,
            400,
            1000,
        ):  # until the scan takes longer than a page may, whatever the machine
            pages = list(timed_pages(connection, large, f"n eq {ROWS - 1} or {matching_nothing(clauses)}"))
            if len(pages) > 1:
                break

    *empty, (matches, _) = pages
    assert [(entity["PartitionKey"], entity["RowKey"]) for entity in matches] == [key_of(ROWS - 1)]
    assert empty and not any(entities for entities, _ in empty)
    assert max(seconds for _, seconds in pages) < PAGE_SECONDS
    assert growth.most < 20 * MEGABYTE


def test_an_unmatched_equality_is_answered_at_once(server, large):
    with Connection(server) as connection:
        tries = [list(timed_pages(connection, large, "s eq 'no such text'")) for _ in range(5)]
    assert [[entities for entities, _ in pages] for pages in tries] == [[[]]] * 5
    assert min(seconds for ((_, seconds),) in tries) < 1.0


def test_scans_leave_others_alone(server, large):
    """More slow scans than there are lanes for them, and a client who only wants entities by key."""
    seconds: list[float] = []

    def scan(connection):
        with connection:
            for _, taken in timed_pages(connection, large, matching_nothing(30)):
                seconds.append(taken)
                if len(seconds) >= SCANS:
                    return []
        return []

    def get(connection):
        results: list[float] = []
        while len(seconds) < SCANS:
            began = time.monotonic()
            assert connection.get(large, key_of(ROWS // 2)).status == 200
            results.append(time.monotonic() - began)
        return results

    results = sorted(Crowd([server]).run([get, *[scan] * SCANS])[0])

    # behind a scan all would wait as long as it takes, and a slow moment is none of the scans'
    assert results[len(results) * 9 // 10] < max(1.0, median(seconds) / 4)
    assert max(seconds) < 2 * PAGE_SECONDS  # they share two cores, and wait for each other


def test_a_walk_over_everything_takes_no_memory(server, large):
    with Connection(server) as connection, growth_of(server.pid) as growth:
        rows = 0
        last = ("", "")
        for page in connection.pages(large):
            keys = [(entity["PartitionKey"], entity["RowKey"]) for entity in page]
            assert last < keys[0] and len(keys) <= 1000
            rows += len(keys)
            last = keys[-1]
    assert rows == ROWS
    assert growth.most < 20 * MEGABYTE


def test_large_entities_come_in_several_pages(server, table):
    """A thousand of them, each a binary property of 64 KiB, so 85 MB of answers."""
    count, size = 1000, 65_536
    value = {"data": EdmValue(Edm.BINARY, bytes(size))}
    load(server, table, (Entity(EntityKey("p", f"{row:04}"), value) for row in range(count)))
    rows: list[str] = []
    with Connection(server) as connection:
        list(connection.pages(table, "$top=500&$filter=RowKey lt '0100'".replace(" ", "%20")))
        with growth_of(server.pid) as growth:
            for page in connection.pages(table):
                rows += [entity["RowKey"] for entity in page if len(entity["data"]) == (size + 2) // 3 * 4]
                assert len(page) * size < PAGE_BYTES

    assert rows == [f"{row:04}" for row in range(count)]
    assert growth.most < 8 * PAGE_BYTES  # some copies of a page: as received, as joined, as sent


def test_stalled_readers_cost_at_most_a_page_each(server, large):
    connections = [Connection(server) for _ in range(20)]
    try:
        with growth_of(server.pid) as growth:
            for connection in connections:
                connection.open().setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                target = f"/{connection.account}/{large}()".encode()
                page = Request(b"GET", target, [(b"Accept", b"application/json;odata=fullmetadata")])
                connection.send_bytes(connection.written(page) * 20)
            for connection in connections:
                assert select.select([connection.open()], [], [], PATIENCE)[0]
    finally:
        for connection in connections:
            connection.close()
    assert growth.most < len(connections) * MEGABYTE
    with Connection(server) as connection:
        assert connection.get(large, key_of(0)).status == 200


def test_backends_stay_small(server, large):
    sizes = []
    for backend in psutil.Process(server.postmaster()).children():
        with suppress(psutil.NoSuchProcess):  # such as a worker of autovacuum that has just ended
            sizes.append(backend.memory_full_info().uss)
    assert max(sizes) < 150 * MEGABYTE


def test_deleting_a_large_table_leaves_its_entities_where_they_are(server, large):
    with Connection(server) as connection, psycopg.connect(database(server), autocommit=True) as session:
        session.execute("VACUUM (ANALYZE)")  # autovacuum might do it meanwhile
        position = "SELECT pg_current_wal_insert_lsn() - '0/0'"
        [before] = session.execute(position).fetchone()
        assert connection.delete_table(large).status == 204
        [after] = session.execute(position).fetchone()
        assert after - before < 10 * ROWS  # bytes, less than a record for each entity
        assert connection.get(large, key_of(0)).code == "TableNotFound"
        assert connection.create_table(large).status == 204
        assert connection.entities(large) == []
