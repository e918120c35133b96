"""A server on a database of its own in the cluster, and clients whose histories are checked."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cluster.real.site import URL, Cluster, serving
from tests.live_server import LiveServer
from tests.tools.checker.clients import EVERYTHING, Endpoint, Load
from tests.tools.checker.feed import Api, check_feed, check_feed_of, check_past
from tests.tools.checker.registers import check_registers

Loading = Callable[..., AbstractContextManager[Load]]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    if URL not in os.environ:
        pytest.skip(f"{URL} names no coordinator of a Citus cluster: see docs/cluster.md")
    return Cluster(os.environ[URL])


@pytest.fixture(scope="session")
def local_nodes(cluster: Cluster) -> Cluster:
    """Return the cluster if its processes can be killed and started by this one."""
    if not cluster.is_local or os.geteuid():
        pytest.skip("only root kills and starts the nodes of a cluster, on their machine")
    return cluster


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> Iterator[str]:
    with cluster.database() as name:
        yield name


@pytest.fixture(scope="session")
def live(cluster: Cluster, database: str, scratch: Path) -> Iterator[LiveServer]:
    with serving(cluster, database, scratch / "cluster") as live:
        live.manage("user", "add", "robot", "--admin")
        yield live


@pytest.fixture(scope="session")
def token(live: LiveServer) -> str:
    return live.add_token("robot", "checker")


@pytest.fixture
def loading(live: LiveServer, token: str) -> Loading:
    """Return `loading()`, which runs clients on a new table, and checks what they did and saw."""

    @contextmanager
    def loading(clients: int = 8, others: tuple[LiveServer, ...] = (), seed: int = 1) -> Iterator[Load]:
        endpoints = [Endpoint(it.port, it.account, it.key) for it in (live, *others)]
        load = Load(endpoints[0], f"t{uuid4().hex}", seed)
        load.past_since = None
        load.add_clients(clients, endpoints)
        with load.running():
            yield load
            load.wait_for_answers(20)
            load.stop()
            with load.client("last", kind=EVERYTHING) as client:
                final = {key: load.recorder.get(client, key).seen[key] for key in load.keys}
                for read in load.history.past[::5]:
                    load.recorder.past(client, list(read.seen), read.moment or 0)
        check(load, Api(endpoints[0], load.table, token), final)

    return loading


def check(load: Load, api: Api, final: dict) -> None:
    """Hold the history of clients against the versions of entities, which a distributed table has."""
    versions = {key: api.versions(key) for key in load.keys}
    changes = [change for own in versions.values() for change in own]
    violations = [it for key, own in versions.items() for it in check_feed(own, {key: final[key]})]
    violations += check_feed_of(load.history, changes)
    violations += check_registers(load.history, changes)
    violations += check_past(load.history, changes)
    assert not violations, "\n".join(map(str, violations[:12]))
    assert len(changes) > len(load.keys)
