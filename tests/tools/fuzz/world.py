"""The servers under test, and the invariants after each request."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.faults.connection import Answer, Connection, Request
from tests.tools.fuzz import protocol
from tests.tools.fuzz.answers import check_answer, is_failed_change_set

PER_EXAMPLE = 20
MOST_FAILURES = 20
Requests = st.SearchStrategy[Request]
Check = Callable[[Answer], None]


@dataclass
class World:
    """A table that may change by valid requests only, and one that must never change."""

    connection: Connection
    observer: Connection
    sent: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.observer.create_table("control")
        for row in range(20):
            self.observer.insert("control", {"PartitionKey": "p", "RowKey": str(row), "n": row, "s": "é😀'%"})
        self._control = self.listing("control")
        self.renew()

    def listing(self, table: str) -> bytes:
        answer = self.observer.request("GET", f"{table}()")
        assert answer.status == 200 and "x-ms-continuation-nextpartitionkey" not in answer.headers, answer
        return answer.body

    def renew(self) -> None:
        self.observer.delete_table(protocol.TABLE)
        self.observer.create_table(protocol.TABLE)
        self._content = self.listing(protocol.TABLE)

    def begin(self) -> None:
        """Small enough to be listed after each request, and there, although a request may have deleted it."""
        gone = self.observer.create_table(protocol.TABLE).status == 204
        if gone or len(self._content) > 10_000:
            self.renew()

    def feed(
        self, requests: Requests, number: int, check: Check | None = None, chance: int | None = None
    ) -> None:
        """Send so many; ``check`` is for answers of other doors than the protocol.

        Which requests misbehave says more than the first of them. Without ``chance`` they are the same each time.
        """

        @settings(
            max_examples=max(1, number // PER_EXAMPLE),
            derandomize=chance is None,
            database=None,
            deadline=None,
            phases=[
                Phase.explicit,
                Phase.generate,
            ],  # requests build on each other, so a shrunk list says little
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(requests, min_size=PER_EXAMPLE, max_size=PER_EXAMPLE))
        def send(batch: Sequence[Request]) -> None:
            if len(self.failures) >= MOST_FAILURES:
                return
            if check is None:
                self._note("before a batch", self.begin)
            for request in batch:
                self._send(request, check)
            self._note(f"one of {len(batch)} requests, the last of them {batch[-1]}", self._check_control)

        (send if chance is None else seed(chance)(send))()

    def _note(self, what: object, check: Callable[[], None]) -> None:
        """Collect a failure: Hypothesis would send the same again."""
        try:
            check()
        except Exception as error:
            self.failures.append(f"{what}\n{type(error).__name__}: {error}"[:5000])
            self.connection.close()
            self.observer.close()

    def _send(self, request: Request, check: Check | None) -> None:
        self.sent += 1
        self._note(request, lambda: self._answer(request, check))

    def _answer(self, request: Request, check: Check | None) -> None:
        head = request.method == b"HEAD"
        self.connection.send_bytes(self.connection.written(request))
        answer = self.connection.read(head=head)
        self.codes[answer.code or str(answer.status)] += 1
        if check is not None:
            check(answer)
            return
        if not is_for_the_console(request):
            check_answer(answer, head=head)
        self._check_table(request, answer)

    def _check_control(self) -> None:
        before, self._control = self._control, self.listing("control")
        assert self._control == before, "a table has changed that was not meant"

    def _check_table(self, request: Request, answer: Answer) -> None:
        if answer.status == 204 and b"tables(" in request.target.lower():
            self.begin()
        before, self._content = self._content, self.listing(protocol.TABLE)
        if answer.status >= 400 or answer.status == 200 or is_failed_change_set(answer):
            assert self._content == before, f"{answer}\n{before!r}\n{self._content!r}"


def is_for_the_console(request: Request) -> bool:
    path = request.target.partition(b"?")[0]
    return path == b"/" or path.startswith(b"/ui/")
