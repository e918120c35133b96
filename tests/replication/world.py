"""A primary, two replicas and a server, with a link between each two that can be slowed down or cut."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.live_server import ACCOUNT, KEY, LiveServer, start_server
from tests.replication.postgres import Group, Node
from tests.tools.checker.clients import Endpoint, Load
from tests.tools.checker.history import History
from tests.tools.checker.levels import Checker, Violation, check
from tests.tools.checker.proxy import Proxy

SCRAPER = "scraper"  # the token that reads metrics
SESSIONS = "sessions"  # an account whose level is Session
BOUND = 1  # seconds, of reads with bounded staleness
LAG = 4  # seconds after which a replica is left out
SLACK = 2.0  # seconds in which a server notices that a replica is further behind


@dataclass
class World:
    """``near`` and ``far`` are the replicas; ``to_`` each node leads the server, ``feed`` leads far to the primary."""

    nodes: Group
    primary: Node
    near: Node
    far: Node
    to_primary: Proxy
    to_near: Proxy
    to_far: Proxy
    feed: Proxy
    server: LiveServer
    environment: Mapping[str, str]  # the server's environment, for another server

    def endpoint(self, account: str = ACCOUNT) -> Endpoint:
        return Endpoint(self.server.port, account, KEY)

    @contextmanager
    def loads(self) -> Iterator[list[Load]]:
        """Clients of all levels at work: sessions in an account of that level, the others in one that is strong."""
        several, sessions = (Load(self.endpoint(name), f"t{uuid4().hex}") for name in (ACCOUNT, SESSIONS))
        several.add_writers(2)
        for level in ("Strong", "BoundedStaleness", "ConsistentPrefix", "Eventual"):
            several.add_readers(level)
        several.add_readers_of_the_secondary()
        sessions.add_writers(1)
        sessions.add_sessions(2)
        with several.running(), sessions.running():
            yield [several, sessions]

    def catch_up(self) -> None:
        """Wait until the replicas have what the primary has."""
        position = self.primary.position()
        for replica in (self.near, self.far):
            replica.wait_for_position(position)


def wait_for_reads(load: Load, node: Node) -> None:
    """Wait until a node has answered some of the reads from now on."""
    before = node.reads()
    load.wait_for(lambda: node.reads() > before + 20, f"read from {node.name}")


def violations(loads: Sequence[Load]) -> list[Violation]:
    results = []
    for load in loads:
        results += check(load.history, bound=BOUND, lag=LAG + SLACK)
        results += Checker(load.history).lost(load.final())
    return results


def staleness(load: Load, *levels: str) -> float:
    """Return the largest staleness, in seconds, of the reads of these levels so far."""
    history = History(list(load.history.writes), list(load.history.reads))
    checker = Checker(history)
    return max(map(checker.staleness, history.of_level(*levels)), default=0.0)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    with ExitStack() as stack:
        nodes = Group(folder)
        stack.callback(nodes.stop)
        primary = nodes.primary()
        feed = stack.enter_context(Proxy(primary.port))
        near = nodes.replica("near", primary)
        far = nodes.replica("far", primary, through=feed.port)
        to_primary, to_near, to_far = (stack.enter_context(Proxy(node.port)) for node in (primary, near, far))
        env = {
            "DATABASE_URL": primary.url(to_primary.port),
            "TABLERO_REPLICAS": f"{near.url(to_near.port)} {far.url(to_far.port)}",
            "TABLERO_REPLICA_LAG": str(LAG),
            "TABLERO_SECRET": uuid4().hex,
            "TABLERO_METRICS_TOKEN": SCRAPER,
            "TABLERO_ACCOUNTS": f"{ACCOUNT}:{KEY};{SESSIONS}:{KEY}",
        }
        server = stack.enter_context(start_server(folder / "server", env=env))
        set_levels(primary)
        yield World(nodes, primary, near, far, to_primary, to_near, to_far, feed, server, env)


def set_levels(primary: Node) -> None:
    """Set the levels of `manage.py account consistency` at once: no server has read an account yet."""
    primary.fetch("UPDATE storage_account SET max_staleness = %s", BOUND)
    primary.fetch("UPDATE storage_account SET consistency = 'Session' WHERE name = %s", SESSIONS)
