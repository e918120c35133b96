"""Requests of a client in a rehearsal, as the functions that look for findings read them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from storage.core.rehearsals import Delivery, Exchange
from storage.domain.access.grants import DELETES, WRITES
from storage.rehearsal.findings import (
    HALF_AN_ANSWER,
    NO_ANSWER,
    REQUESTS_LIMIT,
    Finding,
    FindingKind,
    Severity,
    find_remedies,
)

_WITHHELD: Final = {Delivery.CLOSE, Delivery.RESET, Delivery.SILENCE}
_MUTATIONS: Final = WRITES | DELETES


class Attempt:
    """One request of a client with its answer."""

    __slots__ = ("exchange", "identity", "request_id")

    def __init__(self, exchange: Exchange, request_id: str) -> None:
        self.exchange = exchange
        self.request_id = request_id
        self.identity = _identify(
            exchange
        )  # equal for requests that ask for the same; None if that is not known


def _identify(exchange: Exchange) -> int | None:
    if not exchange.operation:
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
    others: Sequence["ClientLog"] = field(default=(), repr=False)

    @property
    def is_final(self) -> bool:
        """Return whether no request of the client is missing."""
        return self.ended is not None and self.is_whole

    @cached_property
    def horizon(self) -> float:
        """Time up to which all requests of the client are known."""
        if self.is_whole:
            return self.ended if self.ended is not None else self.now
        return self.attempts[-1].exchange.began if self.attempts else 0.0


def is_withheld(exchange: Exchange) -> bool:
    """Return whether a rehearsal kept the whole answer from the client."""
    return exchange.status == 0 and exchange.delivery in _WITHHELD


def gave_up(exchange: Exchange) -> bool:
    """Return whether the client closed the connection before the answer."""
    return exchange.status == 0 and exchange.delivery not in _WITHHELD


def describe_answer(exchange: Exchange) -> str:
    """Return an answer as a fact of a sentence."""
    if exchange.status == 0:
        return NO_ANSWER
    if exchange.delivery == Delivery.CUT:
        return HALF_AN_ANSWER
    return f"{exchange.status} {exchange.error}".rstrip()


def is_mutation(exchange: Exchange) -> bool:
    return exchange.operation in _MUTATIONS


def gather(cases: Iterator[Case], agent: str) -> list[Finding]:
    """Join the cases of a client with the same sentence; faults come first."""
    counts: dict[tuple[FindingKind, Severity, str], int] = {}
    firsts: dict[tuple[FindingKind, Severity, str], Case] = {}
    requests: dict[tuple[FindingKind, Severity, str], dict[str, None]] = {}
    for case in cases:
        key = case.kind, case.severity, case.template
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
    return sorted(findings, key=lambda it: (it.severity is not Severity.FAULT, [*FindingKind].index(it.kind)))
