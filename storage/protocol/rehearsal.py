"""Rehearsals of failures: carries out the fault that was chosen for a request, and describes the exchange.

A fault comes before the operation, after its commit, or in the delivery of its answer, so that a change set is never
torn. An operation that the service refuses is answered as without a rehearsal.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isfinite
from time import perf_counter, time
from typing import Final

from storage.core.rehearsals import (
    Delivery,
    Exchange,
    ExchangedChange,
    RehearsedCall,
    Rehearser,
    RequestFacts,
)
from storage.domain.access.grants import DELETES, WRITES
from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.requests.observed import Authentication
from storage.domain.requests.routes import TargetKind
from storage.domain.requests.series import write_credential
from storage.domain.values.etag import write_etag
from storage.domain.values.names import fold_table_name
from storage.protocol import batch, formats
from storage.protocol.authorization import authorize
from storage.protocol.call import Answer, Call
from storage.protocol.delivery import deliver_as
from storage.protocol.entities import ChangeReader
from storage.protocol.errors import ErrorOrigin
from storage.protocol.http_exchange import Deliver
from storage.protocol.http_request import Headers
from storage.protocol.json_format import read_table_name
from storage.protocol.progress import Progress, observe
from storage.runtime.rehearsed_service import RehearsedService, Seen
from storage.runtime.service import Service

logger = logging.getLogger(__name__)

ASKED: Final = b"x-tablero-rehearse"
DONE: Final = b"x-tablero-rehearsed"
_TOKENS: Final = ("NextPartitionKey", "NextRowKey", "NextTableName")
_CONTINUATION: Final = tuple(f"x-ms-continuation-{name}".encode() for name in _TOKENS)
_WITHHELD: Final = (Delivery.CLOSE, Delivery.RESET, Delivery.SILENCE)
_NUMBERS_LIMIT: Final = 20  # properties of an entity

Perform = Callable[[Call], Awaitable[Answer]]


@dataclass(slots=True)
class RehearsedRequest:
    """Request under a rehearsal, until its exchange is recorded."""

    call: RehearsedCall
    changes: Sequence[ExchangedChange] = ()
    seen: Seen = field(default_factory=Seen)
    is_struck: bool = False  # by the fault of the call
    is_run: bool = False  # the operation was done


async def perform(progress: Progress, rehearser: Rehearser, call: Call, run: Perform) -> Answer:
    """Execute the operation of an authorized request under a rehearsal; ``run`` executes it without."""
    changes = _read_changes(call)
    chosen = await rehearser.begin(_read_facts(call, progress, changes), call.service.run)
    rehearsed = progress.rehearsed = RehearsedRequest(chosen, changes)
    fault = chosen.fault
    call = call._replace(service=RehearsedService(call.service, fault, rehearsed.seen))
    if fault is None:
        answer = await run(call)
        rehearsed.is_run = not _is_refused(call, answer)
        return answer
    rehearsed.is_struck = True
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.skew and progress.request is not None:
        origin, progress.origin = progress.origin, ErrorOrigin.AUTHORIZATION
        await authorize(call.service, call.account, progress.request, skew=fault.skew)
        progress.origin = origin
    if fault.before is not None:
        raise fault.before
    if not fault.is_run:
        return Answer(500, [])  # is not delivered
    changes_answer = fault.after is not None or fault.delivery is not None
    try:
        answer = await run(call)
    except StorageError:
        rehearsed.is_struck = not changes_answer
        raise
    rehearsed.is_run = not _is_refused(call, answer)
    if not rehearsed.is_run and changes_answer:
        rehearsed.is_struck = False
        return answer
    if fault.after is not None:
        raise fault.after
    return answer


def _is_refused(call: Call, answer: Answer) -> bool:
    """Return whether an operation was refused, which a change set answers within its parts."""
    return answer.status >= 400 or call.observed.refusal is not None


async def finish(
    progress: Progress, service: Service, status: int, headers: Headers, *, is_lost: bool
) -> Deliver | None:
    """Record the exchange, and return how the answer is delivered if not as a whole; adds a header to the answer."""
    account, rehearsed = progress.account, progress.rehearsed
    if account is None or account.rehearser is None or account.standby:
        return None
    if rehearsed is None:
        if progress.request is None or not account.rehearser.is_wanted(None):
            return None
        # it was refused before its operation was known, or by it
        try:
            call = await account.rehearser.begin(_refused_facts(progress), service.run)
        except StorageError:
            return None
        rehearsed = RehearsedRequest(call)
        rehearsed.call.fault = None
    fault = rehearsed.call.fault if rehearsed.is_struck else None
    observed = progress.observed
    if fault is not None:
        headers.append((DONE, ",".join(fault.rules).encode()))
        observed.rehearsed = fault.rules
        observed.is_applied = rehearsed.is_run
    exchange = _describe(progress, rehearsed, status, headers)
    if is_lost or (fault is not None and fault.delivery in _WITHHELD):
        exchange.status = 0
    try:
        await rehearsed.call.finish(exchange, observed.request_id)
    except StorageError as error:
        logger.warning("A request of a rehearsal was not recorded: %s", error)
    if fault is None or fault.delivery is None:
        return None
    if fault.delivery is Delivery.SILENCE:
        await asyncio.sleep(fault.seconds)
    return deliver_as(fault.delivery, fault.seconds)


# facts for rules


def _read_changes(call: Call) -> list[ExchangedChange]:
    """Return the changes that a request asks for; none if it cannot be read, which its operation will say."""
    target, request = call.request.target, call.request
    read: list[tuple[str, Change]] = []
    with suppress(StorageError, ChangeSetError):
        if target.kind is TargetKind.BATCH:
            read = batch.read_changes(call)
        elif request.method != "GET" and target.kind in (TargetKind.ENTITY, TargetKind.ENTITIES):
            reader = ChangeReader(request, call.dialect)
            read = [(call.fold(target.table), reader.change(target.key, reader.members(request.body)))]
        return [_describe_change(table, change) for table, change in read]
    return []


def _read_facts(call: Call, progress: Progress, changes: Sequence[ExchangedChange]) -> RequestFacts:
    target, resolved = call.request.target, progress.resolved
    partition: str | None = None
    row: str | None = None
    if changes:
        partition, row = changes[0].partition, changes[0].row if len(changes) == 1 else None
    elif target.kind is TargetKind.ENTITY:
        partition, row = target.key
    return RequestFacts(
        operation=resolved.operation if resolved is not None else None,
        table=changes[0].table if changes else _folded_table(call),
        partition=partition,
        row=row,
        agent=call.caller.agent.decode("latin-1"),
        credential=write_credential(call.credential.authentication, call.credential.name),
        secondary=call.address.secondary,
        cost=max(1, len(changes)),
        asked=_decoded(call.request.headers.get(ASKED)),
    )


def _decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _folded_table(call: Call) -> str:
    request, name = call.request, call.request.target.table
    with suppress(StorageError):
        if request.target.kind is TargetKind.TABLES and request.method == "POST":
            content_type = request.headers.get(b"content-type")
            name = read_table_name(formats.read_object(content_type, request.body, request.version))
        return call.fold(name) if name else ""
    return ""


def _refused_facts(progress: Progress) -> RequestFacts:
    """Return the facts of a request that was refused before its operation."""
    observe(progress)
    observed, credential = progress.observed, progress.observed.credential
    name = credential.name if credential is not None else ""
    is_known = observed.authentication is not Authentication.ANONYMOUS
    table = ""
    with suppress(StorageError):
        table = fold_table_name(observed.table) if observed.table else ""
    return RequestFacts(
        operation=None,
        table=table,
        agent=observed.agent.decode("latin-1"),
        credential=write_credential(observed.authentication, name) if is_known else "",
        secondary=observed.secondary,
    )


# the exchange


def _describe(progress: Progress, rehearsed: RehearsedRequest, status: int, headers: Headers) -> Exchange:
    observed, request, resolved, error = (
        progress.observed,
        progress.request,
        progress.resolved,
        progress.error,
    )
    fault = rehearsed.call.fault if rehearsed.is_struck else None
    target = resolved.target if resolved is not None else None
    now = time()
    exchange = Exchange(
        began=now - (perf_counter() - observed.started),
        ended=now,
        operation=resolved.operation or "" if resolved is not None else "",
        method=resolved.method if resolved is not None else progress.head.method,
        table=target.table if target is not None else "",
        changes=rehearsed.changes,
        entities=rehearsed.seen.entities,
        status=status,
        error=error.code if error is not None else _refusal_code(progress),
        detail=error.details.get("AuthenticationErrorDetail", "") if error is not None else "",
    )
    if target is not None and target.kind is TargetKind.ENTITY:
        exchange.partition, exchange.row = target.key
    elif len(rehearsed.changes) == 1:
        exchange.partition, exchange.row = rehearsed.changes[0].partition, rehearsed.changes[0].row
    elif rehearsed.changes:
        exchange.partition = rehearsed.changes[0].partition
    if rehearsed.changes:
        exchange.table = exchange.table or rehearsed.changes[0].table
    if request is not None:
        exchange.secondary = request.address.secondary
        _describe_query(exchange, request.options)
    answered = {name.lower(): value for name, value in headers}
    exchange.etag = answered.get(b"etag", b"").decode("latin-1")
    exchange.next_token = _digest(*(answered.get(name.lower(), b"").decode() for name in _CONTINUATION))
    exchange.retry_after = _retry_after(answered)
    if fault is not None:
        exchange.rules = fault.rules
        exchange.delivery = fault.delivery or ""
        exchange.lag = fault.lag
    if exchange.operation in WRITES or exchange.operation in DELETES:
        exchange.applied = rehearsed.is_run
    return exchange


def _refusal_code(progress: Progress) -> str:
    refusal = progress.observed.refusal
    return "" if refusal is None else refusal.code


def _describe_query(exchange: Exchange, options: object) -> None:
    given = dict(options) if isinstance(options, dict) else {}
    exchange.token = _digest(*(given.get(name, "") for name in _TOKENS))
    shape = sorted((name, value) for name, value in given.items() if name in ("$filter", "$select", "$top"))
    exchange.query = _digest(*(f"{name}={value}" for name, value in shape))
    top = given.get("$top", "")
    exchange.top = int(top) if top.isdecimal() and len(top) < 10 else None


def _retry_after(answered: dict[bytes, bytes]) -> float | None:
    if b"x-ms-retry-after-ms" in answered:
        return float(answered[b"x-ms-retry-after-ms"]) / 1000
    return float(answered[b"retry-after"]) if b"retry-after" in answered else None


def _digest(*texts: str) -> str:
    """Return a short digest of texts; empty if all are."""
    if not any(texts):
        return ""
    return blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _describe_change(table: str, change: Change) -> ExchangedChange:
    condition, content, numbers = "", "", {}
    match change:
        case Insert():
            verb = "insert"
        case Upsert():
            verb = "insert_or_merge" if change.merge else "insert_or_replace"
        case Update():
            verb = "merge" if change.merge else "replace"
        case Delete():
            verb = "delete"
    if isinstance(change, Update | Delete):
        expected = change.condition.expected
        condition = "*" if expected is None else write_etag(expected)
    if not isinstance(change, Delete):
        written = change.entity.fragments.projection
        content, numbers = _digest(written), _numbers(written)
    partition, row = change.key
    return ExchangedChange(verb, table, partition, row, condition, content, numbers)


def _numbers(projection: str) -> dict[str, float]:
    """Return the first finite numbers among the properties of a row's JSON."""
    try:
        members = json.loads(projection)
    except ValueError:
        return {}
    numbers = {
        name: value
        for name, value in members.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }
    return dict(list(numbers.items())[:_NUMBERS_LIMIT])
