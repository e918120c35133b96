"""Ten thousand generated requests: none may crash, hang, half-write or change what it was not sent to."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.faults import hostile
from tests.faults.answers import check_answer, is_failed_change_set
from tests.faults.connection import Answer, Connection, Request

PER_EXAMPLE = 20
MOST_FAILURES = 20
KINDS = {
    # strategy, requests, share of them that pass the signature check
    "paths": (hostile.wild_paths(), 1800, 0.8),
    "queries": (hostile.wild_queries(), 2600, 0.95),
    "headers": (hostile.wild_headers(), 1800, 0.6),
    "bodies": (hostile.wild_bodies(), 2000, 0.99),
    "batches": (hostile.wild_batches(), 1600, 0.99),
    "signatures": (hostile.wild_signatures(), 600, 0),
}
assert sum(requests for _, requests, _ in KINDS.values()) >= 10_000


class World:
    """A table that may change by valid requests only, and one that must never change."""

    def __init__(self, connection: Connection, observer: Connection) -> None:
        self.connection = connection
        self.observer = observer
        self.sent = 0
        self.codes: Counter[str] = Counter()
        self.failures: list[str] = []
        self.control = self.listing("control")
        self.renew()

    def listing(self, table: str) -> bytes:
        answer = self.observer.request("GET", f"{table}()")
        assert answer.status == 200 and "x-ms-continuation-nextpartitionkey" not in answer.headers, answer
        return answer.body

    def renew(self) -> None:
        self.observer.delete_table(hostile.TABLE)
        self.observer.create_table(hostile.TABLE)
        self.content = self.listing(hostile.TABLE)

    def begin(self) -> None:
        """Small enough to be listed after each request, and there, although a request may have deleted it."""
        gone = self.observer.create_table(hostile.TABLE).status == 204
        if gone or len(self.content) > 10_000:
            self.renew()

    def feed(self, request: Request) -> None:
        """Failures are collected: which requests misbehave says more than the first of them."""
        self.sent += 1
        try:
            self.check(request)
        except Exception as error:
            self.failures.append(f"{request}\n{type(error).__name__}: {error}"[:3000])
            self.connection.close()
            assert len(self.failures) < MOST_FAILURES

    def check(self, request: Request) -> None:
        head = request.method == b"HEAD"
        self.connection.send_bytes(self.connection.written(request))
        answer = self.connection.read(head=head)
        if not is_for_the_console(request):
            check_answer(answer, head=head)
        self.codes[answer.code or str(answer.status)] += 1
        self.check_table(request, answer)

    def check_table(self, request: Request, answer: Answer) -> None:
        if answer.status == 204 and b"tables(" in request.target.lower():
            self.begin()
        content = self.listing(hostile.TABLE)
        if answer.status >= 400 or answer.status == 200 or is_failed_change_set(answer):
            assert content == self.content
        self.content = content

    def end(self) -> None:
        assert self.listing("control") == self.control


def is_for_the_console(request: Request) -> bool:
    path = request.target.partition(b"?")[0]
    return path == b"/" or path.startswith(b"/ui/")


@pytest.fixture(scope="module")
def world(server, stalled) -> Iterator[World]:
    with Connection(server) as connection, Connection(server) as observer:
        observer.create_table("control")
        for row in range(20):
            observer.insert("control", {"PartitionKey": "p", "RowKey": str(row), "n": row, "s": "é😀'%"})
        yield World(connection, observer)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_hostile_requests(kind, world):
    strategy, total, authenticated = KINDS[kind]
    before = world.sent
    world.codes.clear()

    @settings(
        max_examples=total // PER_EXAMPLE,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],  # requests build on each other, so a shrunk list says little
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(strategy, min_size=PER_EXAMPLE, max_size=PER_EXAMPLE))
    def feed(requests):
        world.begin()
        for request in requests:
            world.feed(request)
        world.end()

    try:
        feed()
    finally:
        failures = world.failures
        world.failures = []
        assert not failures, "\n\n".join(failures)
    sent = world.sent - before
    assert sent >= total
    assert world.codes["AuthenticationFailed"] <= sent * (1 - authenticated)
