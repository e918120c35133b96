"""Findings about queries whose continuation tokens were not followed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from storage.domain.access.grants import Operation
from storage.domain.translation import mark as _
from storage.rehearsal.evidence import Attempt, Case, ClientLog
from storage.rehearsal.findings import FindingKind, Severity

_SEVERAL: Final = 3  # pages that show a habit

_EMPTY: Final = _(
    "A query of %(table)s got an empty page with a continuation token. The client did not send the token, so it "
    "cannot know whether there are more entities."
)
_SHORT: Final = _(
    "A query of %(table)s asked for %(top)s entities, and got %(entities)s with a continuation token. The client sent "
    "neither this token nor that of another page of this query."
)
_NEVER: Final = _(
    "A query of %(table)s got %(entities)s entities with a continuation token. The client sent neither this token nor "
    "that of another page of this query."
)


@dataclass(slots=True)
class _Pages:
    """Pages of a query with tokens, by whether the client followed them."""

    followed: list[Attempt] = field(default_factory=list)
    ignored: list[Attempt] = field(default_factory=list)


def find_ignored_token(log: ClientLog) -> Iterator[Case]:
    """Find pages whose continuation token the client did not send, where it cannot have had enough entities."""
    sent: dict[str, float] = {}  # when each token was sent last
    for attempt in log.attempts:
        if attempt.exchange.token:
            sent[attempt.exchange.token] = attempt.began
    queries: dict[tuple[str, str, str], _Pages] = {}
    for attempt in log.attempts:
        exchange = attempt.exchange
        # half an answer, or one that comes slowly, may not have been read
        if not attempt.is_query or not exchange.next_token or exchange.status != 200 or exchange.delivery:
            continue
        pages = queries.setdefault((exchange.operation, exchange.table.lower(), exchange.query), _Pages())
        if sent.get(exchange.next_token, 0.0) >= attempt.began or log.is_sent_by_others(exchange.next_token):
            pages.followed.append(attempt)
        elif log.is_settled(attempt.ended) and not _is_hedged(log, attempt):
            pages.ignored.append(attempt)
    for pages in queries.values():
        yield from _judge(log, pages)


def _is_hedged(log: ClientLog, attempt: Attempt) -> bool:
    """Return whether the same page was asked for twice at the same time, so that one answer is of no use."""
    return not log.is_sequential and attempt.request_id in log.simultaneous


def _judge(log: ClientLog, pages: _Pages) -> Iterator[Case]:
    empty = [it for it in pages.ignored if it.exchange.entities == 0]
    follows_empty = any(it.exchange.entities == 0 for it in pages.followed)
    # one that follows tokens elsewhere may have been stopped once
    if not pages.followed or (len(empty) > 1 and not follows_empty):
        for attempt in empty:
            yield _describe(log, attempt, _EMPTY, Severity.FAULT)
    if pages.followed:
        return
    full = [it for it in pages.ignored if it.exchange.entities]
    short = [it for it in full if _is_short(it)]
    for attempt in short:
        yield _describe(log, attempt, _SHORT, Severity.FAULT)
    # a program that looks for the first entity only has it, and does not ask for a number either
    unbounded = [it for it in full if it.exchange.top is None]
    severity = Severity.FAULT if empty or len(unbounded) >= _SEVERAL else Severity.NOTE
    for attempt in unbounded:
        yield _describe(log, attempt, _NEVER, severity)


def _is_short(attempt: Attempt) -> bool:
    exchange = attempt.exchange
    return exchange.top is not None and (exchange.entities or 0) < exchange.top


def _describe(log: ClientLog, attempt: Attempt, template: str, severity: Severity) -> Case:
    exchange = attempt.exchange
    is_of_tables = exchange.operation == Operation.QUERY_TABLES
    facts: dict[str, object] = {
        "table": "Tables" if is_of_tables else exchange.table,
        "top": exchange.top,
        "entities": exchange.entities,
    }
    following: Sequence[Attempt] = log.next_after(attempt.ended, 1)
    return Case(FindingKind.IGNORED_TOKEN, severity, template, facts, (attempt, *following))
