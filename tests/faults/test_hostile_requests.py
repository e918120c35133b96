"""Two thousand generated requests: none may crash, hang, half-write or change what it was not sent to.

`python3 -m tests.tools.fuzz` sends a million, and to the console and the management API, too.
"""

from collections.abc import Iterator

import pytest

from tests.faults.connection import Connection
from tests.tools.fuzz import documents, protocol
from tests.tools.fuzz.world import World

KINDS = {
    # strategy, requests, share of them that pass the signature check
    "paths": (protocol.wild_paths(), 320, 0.8),
    "queries": (protocol.wild_queries(), 440, 0.95),
    "headers": (protocol.wild_headers(), 320, 0.6),
    "JSON": (protocol.wild_bodies(), 340, 0.99),
    "multipart": (protocol.wild_batches(), 260, 0.99),
    "signatures": (protocol.wild_signatures(), 80, 0),
    "SAS": (documents.wild_sas(), 80, 0),
    "XML": (documents.wild_xml(), 80, 0.99),
    "Atom": (documents.wild_atom(), 80, 0.99),
}


@pytest.fixture(scope="module")
def world(server) -> Iterator[World]:
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
