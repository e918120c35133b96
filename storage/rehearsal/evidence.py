"""Requests of a client in a rehearsal, as the functions that look for findings read them."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from storage.core.rehearsals import WITHHELD, Delivery, Exchange, ExchangedChange
from storage.domain.access.grants import CHANGES, WRITES, Operation
from storage.domain.requests.series import shorten_key
from storage.rehearsal.findings import (
    HALF_AN_ANSWER,
    NO_ANSWER,
    REQUESTS_LIMIT,
    Finding,
    FindingKind,
    Severity,
    find_remedies,
)

Key = tuple[str, str, str]  # table in lower case, PartitionKey, RowKey

QUERIES: Final = frozenset({Operation.QUERY_ENTITIES, Operation.QUERY_TABLES})
TABLE_OPERATIONS: Final = frozenset(
    {Operation.CREATE_TABLE, Operation.DELETE_TABLE, Operation.QUERY_TABLE, Operation.QUERY_TABLES}
)
_RETRYABLE: Final = frozenset({429, 500, 503})
_ECHOED: Final = frozenset(
    {Operation.INSERT_ENTITY, Operation.CREATE_TABLE}
)  # in the answer, with status 201
_WITH_BODY: Final = WRITES - {Operation.CREATE_TABLE}  # told apart by their bodies, Create Table by its table
_MANY: Final = 100  # requests after which a reaction has been seen


class Attempt:
    """One request of a client with its answer."""

    __slots__ = ("began", "ended", "exchange", "identity", "is_mutation", "is_retryable", "request_id")

    def __init__(self, exchange: Exchange, request_id: str) -> None:
        self.exchange = exchange
        self.request_id = request_id
        self.began = exchange.began
        self.ended = exchange.ended
        self.identity = _identify(exchange)
        self.is_mutation = exchange.operation in CHANGES
        # a failure that SDKs retry
        self.is_retryable = exchange.status in _RETRYABLE or self.is_withheld or self._lacks_content

    @property
    def is_query(self) -> bool:
        return self.exchange.operation in QUERIES

    @property
    def is_withheld(self) -> bool:
        """Return whether the rehearsal kept the answer from the client."""
        return self.exchange.status == 0 and self.exchange.delivery in WITHHELD

    @property
    def is_cut(self) -> bool:
        return self.exchange.status != 0 and self.exchange.delivery == Delivery.CUT

    @property
    def _lacks_content(self) -> bool:
        """Return whether the client needs the half of the answer that it did not get.

        Whether an insert was done is known from the status, which comes first.
        """
        return self.is_cut and not (self.exchange.operation in _ECHOED and self.exchange.status == 201)

    @property
    def is_left(self) -> bool:
        """Return whether the client closed the connection before the answer."""
        return self.exchange.status == 0 and self.exchange.delivery not in WITHHELD

    @property
    def is_read_well(self) -> bool:
        """Return whether the client got a whole answer, and not an error."""
        return 200 <= self.exchange.status < 300 and not self.is_cut and not self.exchange.error

    @property
    def is_ambiguous(self) -> bool:
        """Return whether the client cannot know that its write was committed, though it was."""
        return self.exchange.applied is True and not self.is_read_well

    @property
    def keys(self) -> Sequence[Key]:
        """Return the entities that the request names."""
        exchange = self.exchange
        if exchange.changes:
            return [key_of(change) for change in exchange.changes]
        if exchange.partition is not None and exchange.row is not None:
            return [(exchange.table.lower(), exchange.partition, exchange.row)]
        return ()

    @property
    def answer(self) -> str:
        """Return the answer as a fact of a sentence."""
        if self.exchange.status == 0:
            return NO_ANSWER
        if self.is_cut:
            return HALF_AN_ANSWER
        return f"{self.exchange.status} {self.exchange.error}".rstrip()


def show_key(key: str) -> str:
    """Return a key as a fact of a sentence, which may be printed in a terminal."""
    return show_text(shorten_key(key))


def show_text(text: str) -> str:
    """Return a text of a client without characters that a terminal would obey."""
    return "".join(it if it.isprintable() else "\N{REPLACEMENT CHARACTER}" for it in text)


def key_of(change: ExchangedChange) -> Key:
    return change.table.lower(), change.partition, change.row


def kind_of(attempt: Attempt) -> tuple[str, ...]:
    """Return a group of requests: of the same query, or about tables."""
    exchange = attempt.exchange
    if exchange.operation in TABLE_OPERATIONS:
        return ("tables",)
    return exchange.operation, exchange.table.lower(), exchange.query


def _identify(exchange: Exchange) -> int | None:
    """Return a number that is equal for requests that ask for the same; None if that is not known."""
    if not exchange.operation:
        return None
    if exchange.operation in _WITH_BODY and not exchange.changes and not exchange.body:
        return None
    changes = tuple(
        (it.verb, it.table, it.partition, it.row, it.condition, it.content) for it in exchange.changes
    )
    return hash(
        (
            exchange.operation,
            exchange.method,
            exchange.table.lower(),
            exchange.partition,
            exchange.row,
            exchange.query,
            exchange.token,
            exchange.body,
            changes,
        )
    )


class Case(NamedTuple):
    """Occurrence of a finding: the requests that show it, in order."""

    kind: FindingKind
    severity: Severity
    template: str
    facts: Mapping[str, object]
    attempts: Sequence[Attempt]


@dataclass
class ClientLog:
    """Recorded requests of a client in the order in which they began."""

    agent: str
    credential: str
    attempts: Sequence[Attempt]
    is_whole: bool = True  # all of its requests are here
    ended: float | None = None  # when the rehearsal ended; None while it runs
    now: float = 0.0  # when the report is made
    scale: float = 1.0  # factor of rates
    number: int = 0  # among the clients
    senders: Mapping[str, Collection[int]] = field(
        default_factory=dict
    )  # clients by the tokens that they sent

    @property
    def is_final(self) -> bool:
        """Return whether the client sends nothing more, and no request is missing."""
        return self.ended is not None and self.is_whole

    @cached_property
    def horizon(self) -> float:
        """Time up to which all requests of the client are known."""
        if self.is_whole:
            return self.ended if self.ended is not None else self.now
        return self.attempts[-1].began if self.attempts else 0.0

    @cached_property
    def is_sequential(self) -> bool:
        """Flag of a client that never waits for two answers at the same time."""
        busy_until = 0.0
        for attempt in self.attempts:
            if attempt.began < busy_until:
                return False
            if not attempt.is_left:  # the client did not wait for that one
                busy_until = max(busy_until, attempt.ended)
        return True

    @cached_property
    def alike(self) -> Mapping[int, Sequence[Attempt]]:
        """Attempts that ask for the same, by their identity."""
        groups: dict[int, list[Attempt]] = {}
        for attempt in self.attempts:
            if attempt.identity is not None:
                groups.setdefault(attempt.identity, []).append(attempt)
        return groups

    def alike_after(self, attempt: Attempt) -> Sequence[Attempt]:
        """Return the attempts that ask for the same as another, after its end."""
        alike = self.alike[attempt.identity] if attempt.identity is not None else ()
        return alike[bisect_left(alike, attempt.ended, key=lambda it: it.began) :]

    @cached_property
    def simultaneous(self) -> Collection[str]:
        """Request ids of attempts during which the client asked for the same again."""
        request_ids: set[str] = set()
        for alike in self.alike.values():
            latest = alike[0]  # the one that ends last so far
            for attempt in alike[1:]:
                if attempt.began < latest.ended:
                    request_ids |= {attempt.request_id, latest.request_id}
                if attempt.ended > latest.ended:
                    latest = attempt
        return request_ids

    @cached_property
    def touching(self) -> Mapping[Key, Sequence[Attempt]]:
        """Attempts that read or change an entity by its keys."""
        groups: dict[Key, list[Attempt]] = {}
        for attempt in self.attempts:
            for key in attempt.keys:
                groups.setdefault(key, []).append(attempt)
        return groups

    @cached_property
    def last_of_kind(self) -> Mapping[tuple[str, ...], Attempt]:
        """Last attempt of each group."""
        return {kind_of(attempt): attempt for attempt in self.attempts}

    @cached_property
    def _beginnings(self) -> Sequence[float]:
        return [attempt.began for attempt in self.attempts]

    def is_settled(self, moment: float) -> bool:
        """Return whether the client would have reacted to an answer of a moment, if it did at all."""
        after = self.count_after(moment)
        if not self.is_whole:
            return after >= _MANY
        return after > 0 or self.ended is not None

    def is_sent_by_others(self, token: str) -> bool:
        """Return whether another client sent a continuation token."""
        return any(number != self.number for number in self.senders.get(token, ()))

    def count_after(self, moment: float) -> int:
        """Return how many attempts began at a moment or later."""
        return len(self.attempts) - bisect_left(self._beginnings, moment)

    def next_after(self, moment: float, most: int) -> Sequence[Attempt]:
        """Return the first attempts that began at a moment or later."""
        start = bisect_left(self._beginnings, moment)
        return self.attempts[start : start + most]

    def is_retry(self, failed: Attempt, attempt: Attempt) -> bool:
        """Return whether an attempt of the same identity is known to follow the failure of another.

        Several workers under one name may each send the same request once. The x-ms-client-request-id tells
        them apart, because SDKs repeat it in retries.
        """
        if attempt.began < failed.ended:
            return False
        mark = failed.exchange.client_id
        return self.is_sequential or bool(mark and mark == attempt.exchange.client_id)

    def is_next_or_marked(self, failed: Attempt, attempt: Attempt) -> bool:
        """Return whether an attempt has the mark of another, or is the next request of a client with one worker."""
        if attempt.began < failed.ended:
            return False
        mark = failed.exchange.client_id
        if mark and mark == attempt.exchange.client_id:
            return True
        return self.is_sequential and self.next_after(failed.ended, 1)[0] is attempt

    def query_follows(self, attempt: Attempt, tables: Collection[str]) -> bool:
        """Return whether the client queries one of some tables soon after an answer."""
        return any(
            it.exchange.operation == Operation.QUERY_ENTITIES and it.exchange.table.lower() in tables
            for it in self.next_after(attempt.ended, 3)
        )


def gather(cases: Iterable[Case], agent: str) -> list[Finding]:
    """Join the cases of a client with the same sentence; faults come first."""
    counts: dict[tuple[FindingKind, Severity, str, str], int] = {}
    firsts: dict[tuple[FindingKind, Severity, str, str], Case] = {}
    requests: dict[tuple[FindingKind, Severity, str, str], dict[str, None]] = {}
    for case in cases:
        key = case.kind, case.severity, case.template, str(case.facts.get("rule", ""))
        counts[key] = counts.get(key, 0) + 1
        firsts.setdefault(key, case)
        named = requests.setdefault(key, {})
        for attempt in case.attempts:
            if len(named) < REQUESTS_LIMIT:
                named[attempt.request_id] = None
    findings = [
        Finding(
            case.kind,
            case.severity,
            case.template,
            case.facts,
            counts[key],
            tuple(requests[key]),
            find_remedies(case.kind, agent),
        )
        for key, case in firsts.items()
    ]
    return sort_findings(findings)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, then by kind."""
    kinds = [*FindingKind]
    return sorted(findings, key=lambda it: (it.severity is not Severity.FAULT, kinds.index(it.kind)))
