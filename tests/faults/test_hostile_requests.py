"""Ten thousand generated requests: none may crash, hang, half-write or change what it was not sent to.

`python3 -m tests.fuzz` sends a million, and to the console and the management API, too.
"""

from collections.abc import Iterator

import pytest

from tests.faults.connection import Connection
from tests.fuzz import documents, protocol
from tests.fuzz.world import World

KINDS = {
    # strategy, requests, share of them that pass the signature check
    "paths": (protocol.wild_paths(), 1600, 0.8),
    "queries": (protocol.wild_queries(), 2200, 0.95),
    "headers": (protocol.wild_headers(), 1600, 0.6),
    "JSON": (protocol.wild_bodies(), 1700, 0.99),
    "multipart": (protocol.wild_batches(), 1300, 0.99),
    "signatures": (protocol.wild_signatures(), 400, 0),
    "SAS": (documents.wild_sas(), 400, 0),
    "XML": (documents.wild_xml(), 400, 0.99),
    "Atom": (documents.wild_atom(), 400, 0.99),
}
assert sum(requests for _, requests, _ in KINDS.values()) >= 10_000


@pytest.fixture(scope="module")
def world(server, stalled) -> Iterator[World]:
    with Connection(server) as connection, Connection(server) as observer:
        yield World(connection, observer)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_hostile_requests(kind, world):
    strategy, total, authenticated = KINDS[kind]
    before = world.sent
    world.codes.clear()
    try:
        world.feed(strategy, total)
    finally:
        failures = world.failures
        world.failures = []
        assert not failures, "\n\n".join(failures)
    sent = world.sent - before
    assert sent >= total
    assert world.codes["AuthenticationFailed"] <= sent * (1 - authenticated)
