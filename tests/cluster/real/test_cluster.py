"""Distributed tables on the real thing: moves, kills, nodes that hang, and what the documents promise of them."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from uuid import uuid4

import psutil
import pytest

from storage.cluster import function
from tests import forked
from tests.cluster.real.site import serving
from tests.tools.checker.clients import Client, Endpoint, Refused, Unavailable
from tests.tools.checker.history import Kind, Write

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PAUSE = 60.0  # seconds without an acknowledged write while a node starts again, on a busy machine
ANSWER = 10.0  # seconds for the 503 of a node that hangs; SDKs wait for 60 and more


@pytest.fixture
def client(live):
    with Client(Endpoint(live.port, live.account, live.key), f"t{uuid4().hex}") as client:
        client.create_table()
        yield client


def distribute(live, name, *, back=False):
    live.manage("undistribute" if back else "distribute", f"{live.account}/{name}")


def table_of(client):
    return client._table


def longest_pause(load):
    ended = sorted(it.ended for it in load.history.writes if it.ended is not None)
    return max(later - earlier for earlier, later in pairwise(ended))


def relation(cluster, database, name):
    [(number,)] = cluster.coordinator.execute(f"SELECT id FROM storage_table WHERE name = '{name}'", database)
    return f"distributed_{number}"


def fill(client, count=64):
    """Write one entity into each of many partitions, and return their keys."""
    keys = [(f"p{number}", "r") for number in range(count)]
    for number, key in enumerate(keys, 1):
        client.upsert(key, number)
    return keys


def test_a_table_moves_back_and_forth_under_load(live, loading):
    with loading() as load:
        for back in (False, True, False):
            load.wait_for_answers(30)
            distribute(live, load.table, back=back)
        load.wait_for_answers(30)
    assert longest_pause(load) < PAUSE


def test_moments_are_the_same_whenever_they_are_read(live, loading):
    with loading() as load:
        load.wait_for_answers(20)
        distribute(live, load.table)
        load.past_since = time.time_ns() // 100
        load.wait_for_answers(600)
    assert len(load.history.past) > 20


def test_shards_move_to_other_nodes_under_load(live, loading, cluster, database):
    with loading() as load:
        load.wait_for_answers(20)
        distribute(live, load.table)
        name = relation(cluster, database, load.table)
        shards = cluster.coordinator.execute(
            f"SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = '{name}'::regclass",
            database,
        )
        level = cluster.coordinator.execute("SHOW wal_level")[0][0]
        mode = "force_logical" if level == "logical" else "block_writes"
        nodes = {it[1:] for it in shards}
        assert len(nodes) > 1
        for shard, host, port in shards:
            to_host, to_port = min(nodes - {(host, port)})
            cluster.coordinator.execute(
                f"SELECT citus_move_shard_placement({shard}, '{host}', {port}, '{to_host}', {to_port}, '{mode}')",
                database,
            )
            load.wait_for_answers(5)
    assert longest_pause(load) < PAUSE


@pytest.mark.parametrize("place", [0, 1])
def test_nothing_acknowledged_is_lost_when_a_node_is_killed(live, loading, local_nodes, place):
    node = local_nodes.nodes[place]
    with loading() as load:
        load.wait_for_answers(20)
        distribute(live, load.table)
        for _ in range(2):
            load.wait_for_answers(20)
            with node.down():
                time.sleep(1)
        load.wait_for_answers(20)
    assert longest_pause(load) < PAUSE


def test_change_sets_are_whole_and_refusals_keep_connections(live, client, cluster, database):
    distribute(live, table_of(client))
    keys = [("p", f"r{number}") for number in range(5)]
    client.change_set([Write("", key, 1, 0, kind=Kind.UPSERT) for key in keys])
    [(before,)] = sessions(cluster, database)
    for _ in range(30):
        with pytest.raises(Refused, match="EntityAlreadyExists"):
            client.write(Write("", keys[0], 2, 0, kind=Kind.INSERT))
        with pytest.raises(Refused, match="UpdateConditionNotSatisfied"):
            client.write(Write("", keys[0], 2, 0, kind=Kind.REPLACE, if_match=1))
        with pytest.raises(Refused, match="EntityAlreadyExists"):
            client.change_set(
                [
                    *(Write("", key, 3, 0, kind=Kind.UPSERT_MERGE) for key in keys[1:]),
                    Write("", keys[0], 3, 0, kind=Kind.INSERT),
                ]
            )
    assert {client.get(key).value for key in keys} == {1}
    [(after,)] = sessions(cluster, database)
    assert after - before < 60  # a failed statement would close its connection: 90


def sessions(cluster, database):
    """Return how many sessions the workers have begun."""
    time.sleep(1.5)  # statistics are a second late
    total = 0
    for node in cluster.workers:
        [(count,)] = node.execute(
            f"SELECT sessions FROM pg_stat_database WHERE datname = '{database}'", database
        )
        total += count
    return [(total,)]


def test_writes_take_no_memory_that_nodes_keep(live, client, local_nodes, database):
    """Citus 14.0 keeps a plan for each use of a generic one."""
    distribute(live, table_of(client))
    sizes = []
    for count in (20, 20, 100):
        for number in range(count):
            key = (f"p{number % 4}", f"{len(sizes)} {number}")
            client.write(Write("", key, 1, 0, kind=Kind.INSERT))
            client.upsert(key, 2)
            client.upsert(key, 3, merge=True)
        sizes.append(largest_session(local_nodes, database))
    assert sizes[2] - sizes[1] < 3 * 2**20, sizes


def largest_session(cluster, database):
    """Return the most bytes that a session of a database has on a worker, without those that sessions share."""
    sizes = [0]
    for process in (it for node in cluster.workers for it in node.process.children()):
        with suppress(psutil.NoSuchProcess):
            if database in " ".join(process.cmdline()):
                sizes.append(process.memory_full_info().uss)
    return max(sizes)


def test_a_node_that_is_down_fails_alone(live, client, local_nodes):
    distribute(live, table_of(client))
    keys = fill(client)
    local = f"l{uuid4().hex}"
    with Client(Endpoint(live.port, live.account, live.key), local) as other, local_nodes.workers[0].down():
        other.create_table()
        other.upsert(("p", "r"), 1)
        answered, refused = ask(client, keys)
        assert answered and refused
        assert other.get(("p", "r")).value == 1
        status, text, _ = forked.run_command(live.data, "doctor", database=live.database)
        assert status == 1
        assert f"{local_nodes.workers[0].address[1]} cannot be reached" in text
    answered, refused = ask(client, keys)
    assert not refused


def ask(client, keys):
    """Return how many entities are read, and how many reads are refused with 503."""
    refused = 0
    for key in keys:
        try:
            client.get(key)
        except Unavailable:
            refused += 1
    return len(keys) - refused, refused


def test_a_node_that_hangs_is_answered_for_at_once(live, client, local_nodes):
    distribute(live, table_of(client))
    keys = fill(client)
    with (
        Client(Endpoint(live.port, live.account, live.key), f"l{uuid4().hex}") as other,
        ThreadPoolExecutor(30) as pool,
    ):
        other.create_table()
        other.upsert(("p", "r"), 1)
        with local_nodes.workers[1].stopped():
            waiting = [pool.submit(timed_read, live, table_of(client), key) for key in keys]
            for _ in range(20):
                began = time.monotonic()
                assert other.get(("p", "r")).value == 1
                assert time.monotonic() - began < ANSWER
            outcomes = [it.result() for it in waiting]
        assert {code for code, _ in outcomes} == {"", "ServerBusy"}
        assert max(seconds for _, seconds in outcomes) < ANSWER
        client.close()
        deadline = time.monotonic() + 30
        while ask(client, keys)[1]:
            assert time.monotonic() < deadline, "still refused"
            time.sleep(0.2)


def timed_read(live, table, key):
    began = time.monotonic()
    with Client(Endpoint(live.port, live.account, live.key), table) as client:
        try:
            client.get(key)
            code = ""
        except Unavailable as error:
            code = str(error)
    return code, time.monotonic() - began


def test_tables_change_after_a_restart_of_a_node(live, client, local_nodes):
    """The coordinator's connections to the node are lost, and noticed only when they are used."""
    name = table_of(client)
    distribute(live, name)
    live.change_accounts("distributes", live.account, "on")
    try:
        with local_nodes.workers[0].down():
            pass
        made = f"n{uuid4().hex}"
        client.create_table(made)
        with local_nodes.workers[0].down():
            pass
        client.send("DELETE", f"Tables('{made}')")
        with local_nodes.workers[0].down():
            pass
        distribute(live, name, back=True)
        distribute(live, name)
    finally:
        live.change_accounts("distributes", live.account, "off")


def test_many_tables_are_created_at_once(live, cluster, database):
    live.change_accounts("distributes", live.account, "on")

    def create(_):
        with Client(Endpoint(live.port, live.account, live.key), f"m{uuid4().hex}") as client:
            client.create_table()
            client.upsert(("p", "r"), 1)
            client.send("DELETE", f"Tables('{table_of(client)}')")
            return table_of(client)

    try:
        with ThreadPoolExecutor(6) as pool:
            names = "','".join(pool.map(create, range(6)))
        made = f"SELECT count(*) FROM storage_table WHERE distributed AND name IN ('{names}')"
        assert cluster.coordinator.execute(made, database) == [(6,)]
    finally:
        live.change_accounts("distributes", live.account, "off")


def test_a_second_server_works_beside_the_first(live, loading, cluster, database, scratch):
    secret = (live.data / "secret").read_text().strip()
    with (
        serving(cluster, database, scratch / "second", env={"TABLERO_SECRET": secret}) as second,
        loading(others=(second,)) as load,
    ):
        for back in (False, True, False):
            load.wait_for_answers(20)
            distribute(second if back else live, load.table, back=back)
        load.wait_for_answers(20)


def test_another_version_renews_functions_under_load(live, loading, cluster, database, scratch):
    """As in a rolling upgrade: its function has other text, and takes the same arguments."""
    secret = (live.data / "secret").read_text().strip()
    other = function._DELEGATED.replace("#variable_conflict", "-- another version\n#variable_conflict")
    options = {
        "env": {"TABLERO_SECRET": secret},
        "constants": {
            "storage.cluster.function": {"_DELEGATED": other},
            "storage.runtime.periodic": {
                "_LONGEST": 5.0
            },  # else the first server may always be the one that tidies
        },
    }
    with loading() as load:
        load.wait_for_answers(20)
        distribute(live, load.table)
        text = f"SELECT prosrc FROM pg_proc WHERE proname = '{relation(cluster, database, load.table)}_change_set'"
        assert "another version" not in cluster.coordinator.execute(text, database)[0][0]
        with serving(cluster, database, scratch / "other", **options):
            deadline = time.monotonic() + 200
            while "another version" not in "".join(
                it for (it,) in cluster.coordinator.execute(text, database)
            ):
                assert time.monotonic() < deadline, "not renewed"
                time.sleep(1)
            load.wait_for_answers(20)
    assert longest_pause(load) < PAUSE
