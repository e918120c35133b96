"""Findings about writes without an answer, and about writes over the changes of others."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, pairwise
from typing import Final, NamedTuple
from urllib.parse import unquote

from storage.core.rehearsals import Exchange, ExchangedChange
from storage.domain.access.grants import Operation
from storage.domain.translation import mark as _
from storage.rehearsal.evidence import Attempt, Case, ClientLog, Key, key_of, show_key
from storage.rehearsal.findings import FindingKind, Sdk, Severity, find_sdk

_EXISTS: Final = "EntityAlreadyExists"
_CHANGED: Final = "UpdateConditionNotSatisfied"
_MISSING: Final = "ResourceNotFound"
# their clients take 404 after a deletion for success
_DELETES_TWICE: Final = frozenset({Sdk.PYTHON, Sdk.DOTNET, Sdk.JAVA})
_TIME_TO_CHECK: Final = 0.25  # seconds
_ETAG: Final = re.compile(r"W/\"datetime'(.*)'\"")
_REPLACES: Final = frozenset({"replace", "insert_or_replace"})
_UPDATES: Final = frozenset({"replace", "merge", "insert_or_replace", "insert_or_merge"})
_LARGEST_COUNT: Final = 1e8  # larger numbers are probably times
_SPANS_LIMIT: Final = 500_000  # changes that are kept; without others, fewer lost updates are found
_HABIT: Final = 2  # equal steps that show a counter


def _name(key: Key) -> dict[str, object]:
    table, partition, row = key
    return {"table": table, "partition": show_key(partition), "row": show_key(row)}


# repeated after a lost answer


def find_insert_repeated(log: ClientLog) -> Iterator[Case]:
    """Find inserts that got a conflict with their own first attempt, without a look at the entity after it."""
    # one that meets conflicts without lost answers, and goes on, may have them for an answer
    lost_ones = {attempt.identity for attempt in log.attempts if attempt.is_ambiguous}
    tolerates = any(
        attempt.exchange.error == _EXISTS
        and attempt.identity not in lost_ones
        and log.count_after(attempt.ended)
        for attempt in log.attempts
    )
    for lost, repeated in _conflicts(log, _EXISTS):
        inserted = [key_of(change) for change in lost.exchange.changes if change.verb == "insert"]
        if not inserted or not log.is_settled(repeated.ended):
            continue
        if _is_looked_after(log, repeated, inserted, is_read_only=False):
            continue
        is_fault = not tolerates and _had_time(log, repeated)
        yield Case(
            FindingKind.INSERT_REPEATED,
            Severity.FAULT if is_fault else Severity.NOTE,
            _(
                "The insert of the entity (%(partition)s, %(row)s) in %(table)s was committed, but the client got "
                "another answer: %(answer)s. It sent the insert again, got 409 EntityAlreadyExists, and did not read "
                "the entity to find out that it is its own."
            ),
            {**_name(inserted[0]), "answer": lost.answer},
            (lost, repeated),
        )


def find_update_repeated(log: ClientLog) -> Iterator[Case]:
    """Find conditional changes that their own first attempt made fail, without a look at the entity after it."""
    for lost, repeated in _conflicts(log, _CHANGED):
        changed = [key_of(it) for it in lost.exchange.changes if it.condition not in ("", "*")]
        if not changed or not log.is_settled(repeated.ended):
            continue
        if _is_looked_after(log, repeated, changed, is_read_only=True):
            continue
        yield Case(
            FindingKind.UPDATE_REPEATED,
            Severity.FAULT if _had_time(log, repeated) else Severity.NOTE,
            _(
                "A conditional change of the entity (%(partition)s, %(row)s) in %(table)s was committed, but the "
                "client got another answer: %(answer)s. It sent the change again, got 412 UpdateConditionNotSatisfied "
                "because its first attempt had changed the ETag, and did not read the entity again."
            ),
            {**_name(changed[0]), "answer": lost.answer},
            (lost, repeated),
        )


def find_inserted_twice(log: ClientLog) -> Iterator[Case]:
    """Find inserts that were committed without an answer, and sent again under another key."""
    if not log.is_sequential:
        return  # several workers may insert alike entities
    inserts = [attempt for attempt in log.attempts if attempt.exchange.operation == Operation.INSERT_ENTITY]
    cases: list[tuple[Attempt, Attempt]] = []
    for first, second in pairwise(inserts):
        if first.is_ambiguous and second.exchange.applied is True and _has_new_key(first, second):
            kept = first.keys[0]
            # it may read or delete the first one
            if not any(it.began >= first.ended for it in log.touching[kept]):
                cases.append((first, second))
    repeated = {second.request_id for _, second in cases}
    contents = Counter(
        change.content for it in inserts if it.request_id not in repeated for change in it.exchange.changes
    )
    # entities that are alike anyway, such as events, prove nothing
    is_telling = len(contents) > _HABIT and max(contents.values()) == 1
    for first, second in cases if is_telling else ():
        yield Case(
            FindingKind.INSERTED_TWICE,
            Severity.FAULT,
            _(
                "The insert of the entity (%(partition)s, %(row)s) in %(table)s was committed, but the client got "
                "another answer: %(answer)s. It inserted the same content with the RowKey %(second)s, and left the "
                "first entity."
            ),
            {**_name(first.keys[0]), "second": show_key(second.keys[0][2]), "answer": first.answer},
            (first, second),
        )


def _has_new_key(first: Attempt, second: Attempt) -> bool:
    """Return whether two inserts have the same content in the same table, and different keys."""
    if len(first.exchange.changes) != 1 or len(second.exchange.changes) != 1:
        return False
    (one,), (other,) = first.exchange.changes, second.exchange.changes
    is_alike = (one.table, one.content) == (other.table, other.content) and one.content != ""
    return is_alike and (one.partition, one.row) != (other.partition, other.row)


def find_delete_repeated(log: ClientLog) -> Iterator[Case]:
    """Find deletions that were committed without their answer, and repeated; the client may think that it failed."""
    if find_sdk(log.agent) in _DELETES_TWICE:
        return
    for lost, repeated in _conflicts(log, _MISSING):
        deleted = [key_of(change) for change in lost.exchange.changes if change.verb == "delete"]
        if not deleted or _is_looked_after(log, repeated, deleted, is_read_only=False):
            continue
        yield Case(
            FindingKind.DELETE_REPEATED,
            Severity.NOTE,
            _(
                "The deletion of the entity (%(partition)s, %(row)s) in %(table)s was committed, but the client got "
                "another answer: %(answer)s. It sent the deletion again and got 404 ResourceNotFound. If it takes "
                "that for a failure, it fails although the entity is deleted."
            ),
            {**_name(deleted[0]), "answer": lost.answer},
            (lost, repeated),
        )


def _conflicts(log: ClientLog, error: str) -> Iterator[tuple[Attempt, Attempt]]:
    """Yield committed writes without their answer, and the same write later with an error, if it came next."""
    answered = {
        identity: [it for it in alike if not it.is_retryable and not it.is_left]
        for identity, alike in log.alike.items()
    }
    for attempt in log.attempts:
        if not attempt.is_ambiguous or not attempt.exchange.changes or attempt.identity is None:
            continue
        later = answered[attempt.identity]
        # a client that has left repeats a request before the first one ends
        find, since = (bisect_right, attempt.began) if attempt.is_left else (bisect_left, attempt.ended)
        place = find(later, since, key=lambda it: it.began)
        if place < len(later) and later[place].exchange.error == error:
            yield attempt, later[place]


def _is_looked_after(log: ClientLog, conflict: Attempt, keys: Sequence[Key], *, is_read_only: bool) -> bool:
    """Return whether the client reads the entities of a conflict after it, or changes them without conditions."""
    if log.query_follows(conflict, {table for table, _, _ in keys}):
        return True
    for key in keys:
        for attempt in reversed(log.touching.get(key, ())):
            if attempt.began < conflict.ended:
                break
            if attempt.identity == conflict.identity:
                continue
            if not is_read_only or not attempt.is_mutation:
                return True
            if all(it.condition in ("", "*") for it in attempt.exchange.changes if key_of(it) == key):
                return True
    return False


def _had_time(log: ClientLog, attempt: Attempt) -> bool:
    """Return whether a client that reacts to an answer would have been seen."""
    return bool(log.count_after(attempt.ended)) or log.horizon - attempt.ended >= _TIME_TO_CHECK


# numbers


class _Write(NamedTuple):
    attempt: Attempt
    change: ExchangedChange
    reads: int  # since the write before


def find_added_twice(log: ClientLog) -> Iterator[Case]:
    """Find counters whose increase was committed without an answer, and then read and increased again.

    Whether both increases are the same one, only the client knows.
    """
    if not log.is_sequential:
        return  # the reads of several workers cannot be told apart
    for key, attempts in log.touching.items():
        if not any(it.is_ambiguous for it in attempts):
            continue
        writes = _read_writes(key, attempts)
        steps = _count_steps(writes)
        for before, after in pairwise(writes):
            if (
                not before.attempt.is_ambiguous
                or after.reads != 1
                or after.attempt.exchange.applied is not True
            ):
                continue
            name = _find_counter(steps, before.change, after.change)
            if name is None:
                continue
            yield Case(
                FindingKind.ADDED_TWICE,
                Severity.NOTE,
                _(
                    "A change of the entity (%(partition)s, %(row)s) in %(table)s, with %(property)s = %(first)s, was "
                    "committed, but the client got another answer: %(answer)s. It read the entity and wrote "
                    "%(property)s = %(second)s. If it repeated the first change with that, it was counted twice."
                ),
                {
                    **_name(key),
                    "property": name,
                    "first": f"{before.change.numbers[name]:g}",
                    "second": f"{after.change.numbers[name]:g}",
                    "answer": before.attempt.answer,
                },
                (before.attempt, after.attempt),
            )


def _read_writes(key: Key, attempts: Sequence[Attempt]) -> list[_Write]:
    """Return the writes of an entity that were done, without immediate repetitions."""
    writes: list[_Write] = []
    reads = 0
    for attempt in attempts:
        if not attempt.is_mutation:
            reads += attempt.is_read_well
            continue
        change = (
            next(it for it in attempt.exchange.changes if key_of(it) == key)
            if attempt.exchange.changes
            else None
        )
        if change is None or change.verb not in _UPDATES or attempt.exchange.applied is not True:
            continue
        if writes and writes[-1].change == change:
            writes[-1] = writes[-1]._replace(
                attempt=attempt
            )  # the answer to the repetition is the one that counts
            continue
        writes.append(_Write(attempt, change, reads))
        reads = 0
    return writes


def _count_steps(writes: Sequence[_Write]) -> Counter[tuple[str, float]]:
    """Count the steps by which each number changes from one write to the next, with a read between."""
    return Counter(
        (name, after.change.numbers[name] - value)
        for before, after in pairwise(writes)
        if after.reads
        for name, value in before.change.numbers.items()
        if name in after.change.numbers
    )


def _find_counter(
    steps: Counter[tuple[str, float]], first: ExchangedChange, second: ExchangedChange
) -> str | None:
    """Return a number that often grows by the step between two changes."""
    for name, value in first.numbers.items():
        step = second.numbers.get(name, value) - value
        if step and abs(value) < _LARGEST_COUNT and steps[name, step] > _HABIT:
            return name
    return None


# lost updates


class _Span(NamedTuple):
    began: float
    ended: float
    client: int
    content: str


class Overwrite(NamedTuple):
    """Unconditional replacement of an entity that the client had read before."""

    key: Key
    read: Attempt
    write: Attempt
    content: str


@dataclass
class SharedEntities:
    """Changes of each entity by each client, and the replacements that may have lost some of them."""

    changes: dict[Key, list[_Span]] = field(default_factory=dict)
    overwrites: dict[int, list[Overwrite]] = field(default_factory=dict)
    _is_sorted: bool = False
    _number: int = 0  # changes so far

    def add(self, client: int, log: ClientLog) -> None:
        """Add the changes and replacements of a client."""
        self.overwrites[client] = list(_find_overwrites(log))
        for attempt in log.attempts:
            exchange = attempt.exchange
            if exchange.applied is not True or self._number >= _SPANS_LIMIT:
                continue
            self._number += len(exchange.changes)
            for change in exchange.changes:
                span = _Span(exchange.began, exchange.ended, client, change.content)
                self.changes.setdefault(key_of(change), []).append(span)

    def find_lost_updates(self, client: int, agents: Mapping[int, str]) -> Iterator[Case]:
        """Find changes of other clients between a client's read and its unconditional replacement."""
        if not self._is_sorted:
            for spans in self.changes.values():
                spans.sort()
            self._is_sorted = True
        for overwrite in self.overwrites.get(client, ()):
            other = self._find_change(client, overwrite)
            if other is None:
                continue
            yield Case(
                FindingKind.LOST_UPDATE,
                Severity.FAULT,
                _(
                    "The client read the entity (%(partition)s, %(row)s) in %(table)s. After that, %(other)s changed "
                    "it, and then the client replaced it without a condition, so that change is lost."
                ),
                {**_name(overwrite.key), "other": agents[other.client]},
                (overwrite.read, overwrite.write),
            )

    def _find_change(self, client: int, overwrite: Overwrite) -> _Span | None:
        """Return a change of another client that was wholly between a read and a replacement."""
        spans = self.changes.get(overwrite.key, [])
        start = bisect_right(spans, overwrite.read.ended, key=lambda span: span.began)
        for span in islice(spans, start, None):
            if span.began >= overwrite.write.began:
                break
            if (
                span.client != client
                and span.ended < overwrite.write.began
                and span.content != overwrite.content
            ):
                return span
        return None


def _find_overwrites(log: ClientLog) -> Iterator[Overwrite]:
    """Find replacements without a condition that follow a read of the same entity."""
    queried: dict[str, float] = {}
    seen: dict[Key, Attempt] = {}
    for attempt in log.attempts:
        exchange = attempt.exchange
        if exchange.operation == Operation.QUERY_ENTITIES:
            # any entity of the table may be in the answer
            queried[exchange.table.lower()] = attempt.ended
        elif exchange.operation == Operation.QUERY_ENTITY and attempt.keys:
            if attempt.is_read_well:
                seen[attempt.keys[0]] = attempt
        elif exchange.applied is True:
            for change in exchange.changes:
                key = key_of(change)
                read = seen.pop(key, None)
                is_blind = change.verb in _REPLACES and change.condition in ("", "*")
                # a read may still have been under way when the write began
                if read is None or not is_blind or read.ended > attempt.began:
                    continue
                if queried.get(key[0], 0.0) <= read.ended:
                    yield Overwrite(key, read, attempt, change.content)


# the secondary


def find_stale_read(log: ClientLog) -> Iterator[Case]:
    """Find reads of the client's own writes from a secondary that could not have them yet."""
    if any(attempt.exchange.operation == Operation.GET_SERVICE_STATS for attempt in log.attempts):
        return  # it asks how far the secondary is
    written: dict[Key, Attempt] = {}
    looked_at = {
        key: attempt.began
        for attempt in log.attempts
        if not attempt.is_mutation and not attempt.exchange.secondary
        for key in attempt.keys
    }
    for attempt in log.attempts:
        exchange = attempt.exchange
        if exchange.applied is True:
            written.update(dict.fromkeys(attempt.keys, attempt))
            continue
        if (
            not exchange.lag
            or exchange.operation != Operation.QUERY_ENTITY
            or exchange.status not in (200, 404)
        ):
            continue
        for key in attempt.keys:
            write = written.get(key)
            if write is None or write.ended >= attempt.began or write.began <= attempt.ended - exchange.lag:
                continue
            if looked_at.get(key, 0.0) >= attempt.ended or not _is_older(exchange, write.exchange, key):
                continue  # it looks at the primary, too, or has got its write
            yield Case(
                FindingKind.STALE_READ,
                Severity.FAULT,
                _(
                    "The client wrote the entity (%(partition)s, %(row)s) in %(table)s, and read it from the secondary "
                    "%(milliseconds)s ms later. The secondary was %(lag)s s behind, so the client got an older state."
                ),
                {
                    **_name(key),
                    "milliseconds": round((attempt.began - write.ended) * 1000),
                    "lag": f"{exchange.lag:g}",
                },
                (write, attempt),
            )


def _is_older(read: Exchange, write: Exchange, key: Key) -> bool:
    """Return whether a read shows an entity as before a write; a table without a history shows the present."""
    if any(change.verb == "delete" and key_of(change) == key for change in write.changes):
        return read.status == 200
    if read.status == 404:
        return True
    seen, made = _read_etag(read.etag), _read_etag(write.etag)
    return seen is not None and made is not None and seen < made


def _read_etag(etag: str) -> datetime | None:
    """Return the time in an ETag."""
    match = _ETAG.fullmatch(unquote(etag))
    try:
        return datetime.fromisoformat(match[1]) if match is not None else None
    except ValueError:
        return None
