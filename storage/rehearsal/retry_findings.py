"""Findings about what a client sent after failures."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from storage.domain.access.grants import Operation
from storage.domain.translation import mark as _
from storage.rehearsal.evidence import TABLE_OPERATIONS, Attempt, Case, ClientLog, kind_of
from storage.rehearsal.findings import FindingKind, Severity

_AT_ONCE: Final = 0.1  # seconds
# HTTP libraries repeat a request several times when its connection is closed without an answer
_SILENT_RETRIES: Final = 5
_REFUSED: Final = frozenset({400, 413, 415, 501})
_LONG_AGO: Final = 60.0  # seconds after which no retry is expected
_SOON: Final = 5.0  # seconds
_MANY: Final = 5  # requests
_FEW: Final = 3


def _chains(log: ClientLog, is_repeated: Callable[[Attempt], bool]) -> Iterator[Sequence[Attempt]]:
    """Yield attempts of the same request, each after an answer that meets a condition, except perhaps the last."""
    failed = {attempt.identity for attempt in log.attempts if is_repeated(attempt)}
    for identity in failed - {None}:
        assert identity is not None
        alike = log.alike[identity]
        # workers that send the same at the same time are told apart by their marks
        rows: dict[str, list[Attempt]] = {}
        for attempt in alike:
            mark = "" if log.is_sequential else attempt.exchange.client_id
            chain = rows.setdefault(mark, [])
            if chain and not (is_repeated(chain[-1]) and log.is_next_or_marked(chain[-1], attempt)):
                yield chain
                chain = rows[mark] = []
            chain.append(attempt)
        yield from rows.values()


def _name(attempt: Attempt) -> dict[str, object]:
    exchange = attempt.exchange
    return {"operation": exchange.operation, "answer": attempt.answer}


def find_retried_at_once(log: ClientLog) -> Iterator[Case]:
    """Find requests that were sent again at least twice in a row without a delay; one such retry is fine."""
    for chain in _chains(log, lambda attempt: attempt.is_retryable):
        run = [chain[0]]
        for before, after in pairwise(chain):
            if after.began - before.ended < _AT_ONCE and before.exchange.retry_after != 0:
                run.append(after)
                continue
            yield from _describe_run(run)
            run = [after]
        yield from _describe_run(run)


def _describe_run(run: Sequence[Attempt]) -> Iterator[Case]:
    silent = sum(attempt.exchange.status == 0 or attempt.is_cut for attempt in run[:-1])
    times = len(run) - 1
    if times - silent < 2 and silent < _SILENT_RETRIES:
        return
    longest = max(after.began - before.ended for before, after in pairwise(run))
    yield Case(
        FindingKind.RETRIED_AT_ONCE,
        Severity.FAULT,
        _(
            "%(operation)s failed (%(answer)s). The client sent it again %(times)s times in a row, each time within "
            "%(milliseconds)s ms."
        ),
        {**_name(run[0]), "times": times, "milliseconds": max(1, round(longest * 1000))},
        run,
    )


def find_retried_before_retry_after(log: ClientLog) -> Iterator[Case]:
    """Find requests that were sent again before the time that the answer asked for."""
    for chain in _chains(log, lambda attempt: attempt.is_retryable):
        for before, after in pairwise(chain):
            seconds, waited = before.exchange.retry_after, after.began - before.ended
            # clocks and timers are not exact
            if seconds is None or waited >= seconds - max(0.1, seconds / 20):
                continue
            yield Case(
                FindingKind.RETRIED_BEFORE_RETRY_AFTER,
                Severity.FAULT,
                _(
                    "%(operation)s was answered %(answer)s with Retry-After: %(seconds)s. The client sent it again "
                    "after %(milliseconds)s ms."
                ),
                {**_name(before), "seconds": f"{seconds:g}", "milliseconds": round(waited * 1000)},
                (before, after),
            )


def find_retried_refused(log: ClientLog) -> Iterator[Case]:
    """Find requests that were sent again, and refused again, though nothing in them had changed."""

    def is_refused(attempt: Attempt) -> bool:
        return attempt.exchange.status in _REFUSED

    for chain in _chains(log, is_refused):
        if len(chain) < 2 or not is_refused(chain[-1]):
            continue
        marks = {attempt.exchange.client_id for attempt in chain}
        # without a common mark, it may be a new request that is wrong in the same way, such as those of tests
        is_certain = len(marks) == 1 and "" not in marks
        if not is_certain and len(chain) < 3:
            continue
        yield Case(
            FindingKind.RETRIED_REFUSED,
            Severity.FAULT if is_certain else Severity.NOTE,
            _(
                "%(operation)s was refused (%(answer)s). The client sent the same again: %(times)s attempts in all."
            ),
            {**_name(chain[0]), "times": len(chain)},
            chain,
        )


def find_retries_exhausted(log: ClientLog) -> Iterator[Case]:
    """Find requests that failed several times, and were not sent again."""
    for chain in _chains(log, lambda attempt: attempt.is_retryable):
        last = chain[-1]
        if len(chain) < 3 or not last.is_retryable or last.identity is None:
            continue
        if log.alike_after(last):
            continue
        is_over = log.horizon - last.ended >= _LONG_AGO
        if not is_over and not (log.is_final and log.count_after(last.ended)):
            continue
        yield Case(
            FindingKind.RETRIES_EXHAUSTED,
            Severity.NOTE,
            _(
                "%(operation)s failed %(times)s times in a row within %(seconds)s s, the last time with: %(answer)s. "
                "The client did not send it again."
            ),
            {
                **_name(last),
                "times": len(chain),
                "seconds": f"{last.ended - chain[0].began:.1f}",
            },
            chain,
        )


def find_not_retried(log: ClientLog) -> Iterator[Case]:
    """Find failures after which the client neither sent the request again nor looked after its effect."""
    failures = [attempt for attempt in log.attempts if attempt.is_retryable]
    dropped = [attempt for attempt in failures if _is_dropped(log, attempt)]
    never_retries = len(dropped) == len(failures)
    for attempt in dropped:
        later, waited = log.count_after(attempt.ended), log.horizon - attempt.ended
        is_over = waited >= max(_LONG_AGO, 2 * (attempt.exchange.retry_after or 0))
        if not is_over and not log.is_final:
            continue
        if not later:
            # it may have been stopped by its user
            yield Case(
                FindingKind.NOT_RETRIED,
                Severity.NOTE,
                _(
                    "%(operation)s failed (%(answer)s). The client sent nothing more in the %(seconds)s s until the "
                    "end of the rehearsal."
                )
                if log.is_final
                else _(
                    "%(operation)s failed (%(answer)s). The client has sent nothing since, for %(seconds)s s."
                ),
                {**_name(attempt), "seconds": f"{waited:.1f}"},
                (attempt,),
            )
            continue
        soon = max(_SOON, 2 * (attempt.exchange.retry_after or 0))
        if log.is_sequential:
            went_on = later >= _MANY or waited >= soon or (never_retries and len(dropped) > 1)
        else:  # any of several workers may still wait
            went_on = never_retries and len(dropped) >= _MANY and waited >= soon
        yield Case(
            FindingKind.NOT_RETRIED,
            Severity.FAULT if is_over or went_on else Severity.NOTE,
            _(
                "%(operation)s failed (%(answer)s). The client did not send it again, but other requests after it "
                "(%(later)s)."
            ),
            {**_name(attempt), "later": later},
            (attempt, *log.next_after(attempt.ended, 1)),
        )


def _is_dropped(log: ClientLog, failed: Attempt) -> bool:
    """Return whether no other attempt repeats a failed one, or handles its failure in another way."""
    if failed.identity is None:
        return False
    alike = log.alike[failed.identity]
    if any(it is not failed and it.ended >= failed.began for it in reversed(alike)):
        return False  # sent again, or twice at the same time
    place = alike.index(failed)  # here it is the last one, or nearly
    if place and alike[place - 1].is_retryable and log.is_retry(alike[place - 1], failed):
        return False  # itself a retry
    for key in failed.keys[:1]:
        if any(it is not failed and it.ended >= failed.began for it in reversed(log.touching[key])):
            return False  # read, or changed in another way
    if failed.is_query or failed.exchange.operation in TABLE_OPERATIONS:
        # begun again from another page, or looked after with another operation on tables
        return log.last_of_kind[kind_of(failed)] is failed and not _is_created(log, failed)
    if failed.is_mutation:
        table = failed.exchange.table.lower()
        return not log.query_follows(failed, {table}) and not _is_sent_with_new_key(log, failed)
    return True


def _is_created(log: ClientLog, failed: Attempt) -> bool:
    """Return whether a failed creation of a table turns out well: the client uses the table soon after it."""
    table = failed.exchange.table.lower()
    return failed.exchange.operation == Operation.CREATE_TABLE and any(
        it.is_read_well and it.exchange.table.lower() == table for it in log.next_after(failed.ended, _FEW)
    )


def _is_sent_with_new_key(log: ClientLog, failed: Attempt) -> bool:
    """Return whether the content of an insert is sent soon again, perhaps under a key of that attempt only."""
    contents = [change.content for change in failed.exchange.changes]
    return any(
        [change.content for change in it.exchange.changes] == contents and any(contents)
        for it in log.next_after(failed.ended, 3)
        if it.exchange.operation == failed.exchange.operation
    )
