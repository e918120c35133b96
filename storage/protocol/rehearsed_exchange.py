"""Facts of rehearsed requests for rules, and descriptions of their exchanges for reports."""

import json
from collections.abc import Mapping, Sequence
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
    RequestFacts,
    Treatment,
)
from storage.domain.access.grants import CHANGES, Operation
from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.errors import ChangeSetError, StorageError
from storage.domain.filters.keys import key_range
from storage.domain.requests.observed import Authentication
from storage.domain.requests.routes import Target, TargetKind
from storage.domain.requests.series import write_credential
from storage.domain.values.etag import write_etag
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.protocol import batch, formats
from storage.protocol.call import Call
from storage.protocol.entities import ChangeReader
from storage.protocol.http_request import Headers
from storage.protocol.json_format import read_table_name
from storage.protocol.progress import Progress, observe
from storage.protocol.query_options import read_entity_query
from storage.runtime.rehearsed_service import Seen

_TOKENS: Final = ("NextPartitionKey", "NextRowKey", "NextTableName")
_CONTINUATION: Final = tuple(f"x-ms-continuation-{name}".encode() for name in _TOKENS)
_CLIENT_ID: Final = b"x-ms-client-request-id"
_NUMBERS_LIMIT: Final = 20  # properties of an entity


@dataclass(slots=True)
class ReadRequest:
    """Operation and keys of a request; a batch with a query counts as that query."""

    operation: Operation | None = None
    table: str = ""
    partition: str | None = None  # the only one that the request is about
    row: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    changes: Sequence[ExchangedChange] = ()
    body: str = ""  # digest, if the changes do not describe it


@dataclass(slots=True)
class RehearsedRequest:
    """Request under a rehearsal, until its exchange is recorded."""

    call: RehearsedCall
    read: ReadRequest = field(default_factory=ReadRequest)
    seen: Seen = field(default_factory=Seen)
    struck: list[str] = field(default_factory=list)  # names of rules that had an effect
    is_faulted: bool = False  # one of them did more than delay it
    is_failure: bool = False  # because of them
    delivery: Delivery | None = None
    is_run: bool | None = False  # whether the operation was done; None if it is not known

    def strike(self, treatment: Treatment) -> None:
        """Note that a part of the fault had an effect."""
        fault = self.call.fault
        if fault is None:
            return
        names = fault.names(treatment)
        self.struck += names
        if names and treatment is not Treatment.DELAY:
            self.is_faulted = True
        if treatment is Treatment.FAILURE:
            self.delivery = fault.delivery
            self.is_failure = fault.delivery is not Delivery.SLOW
        elif treatment is Treatment.SKEW and fault.skew:
            self.is_failure = True


# requests


def read_request(call: Call, progress: Progress) -> ReadRequest:
    """Return what a request asks for; one that cannot be read has no changes, which its operation will say."""
    resolved, request = progress.resolved, call.request
    read = ReadRequest(resolved.operation if resolved is not None else None, options=request.options)
    read.table = request.target.table
    with suppress(StorageError, ChangeSetError):
        if request.target.kind is TargetKind.BATCH:
            _read_batch(call, read)
        elif request.method == "POST" and request.target.kind is TargetKind.TABLES:
            content_type = request.headers.get(b"content-type")
            read.table = read_table_name(formats.read_object(content_type, request.body, request.version))
        elif request.method != "GET" and request.target.kind in (TargetKind.ENTITY, TargetKind.ENTITIES):
            reader = ChangeReader(request, call.dialect)
            change = reader.change(request.target.key, reader.members(request.body))
            read.changes = [_describe_change(call.fold(read.table), change)]
    _find_key(read, request.target)
    if request.body and not read.changes and read.operation is not Operation.QUERY_ENTITIES:
        read.body = blake2b(request.body, digest_size=8).hexdigest()
    return read


def _read_batch(call: Call, read: ReadRequest) -> None:
    content = batch.read_content(call)
    read.changes = [_describe_change(table, change) for table, change in content.changes]
    if content.changes:
        read.table = content.changes[0][0]
    if content.query is not None:
        inner = content.query.request
        read.operation = batch.query_operation(inner.target)
        read.table, read.options = inner.target.table, inner.options
        _find_key(read, inner.target)


def _find_key(read: ReadRequest, target: Target) -> None:
    if target.kind is TargetKind.ENTITY:
        read.partition, read.row = target.key
    elif read.changes:
        read.partition = read.changes[0].partition
        read.row = read.changes[0].row if len(read.changes) == 1 else None


def read_facts(call: Call, read: ReadRequest, asked: bytes | None) -> RequestFacts:
    """Return the facts of an authorized request, with the fault that it asks for itself."""
    table = ""
    with suppress(StorageError):
        table = call.fold(read.table) if read.table else ""
    return RequestFacts(
        operation=read.operation,
        table=table,
        partition=_queried_partition(call, read) if read.partition is None else read.partition,
        row=read.row,
        agent=call.caller.agent.decode("latin-1"),
        credential=write_credential(call.credential.authentication, call.credential.name),
        secondary=call.address.secondary,
        is_continued=any(map(read.options.get, _TOKENS)),
        cost=max(1, len(read.changes)),
        asked=None if asked is None else asked.decode("latin-1"),
    )


def _queried_partition(call: Call, read: ReadRequest) -> str | None:
    """Return the only partition of a query; None if it may read several."""
    if read.operation is Operation.QUERY_ENTITIES:
        with suppress(StorageError):
            query = read_entity_query(read.options, call.dialect, annotations=False)
            return key_range(query.filter).partition.single
    return None


def read_refused_facts(progress: Progress, kind: AccountKind) -> RequestFacts:
    """Return the facts of a request that an account of a kind refused before its operation."""
    observe(progress)
    observed, credential = progress.observed, progress.observed.credential
    name = credential.name if credential is not None else ""
    is_known = observed.authentication is not Authentication.ANONYMOUS
    table = ""
    with suppress(StorageError):
        table = fold_table_name(observed.table, kind) if observed.table else ""
    return RequestFacts(
        operation=None,
        table=table,
        agent=observed.agent.decode("latin-1"),
        credential=write_credential(observed.authentication, name) if is_known else "",
        secondary=observed.secondary,
    )


# exchanges


def describe_exchange(
    progress: Progress, rehearsed: RehearsedRequest, status: int, headers: Headers
) -> Exchange:
    """Describe a request and its answer for reports."""
    observed, request, error, read = progress.observed, progress.request, progress.error, rehearsed.read
    resolved, fault = progress.resolved, rehearsed.call.fault
    now = time()
    exchange = Exchange(
        began=now - (perf_counter() - observed.started),
        ended=now,
        operation=read.operation or "",
        method=resolved.method if resolved is not None else progress.head.method,
        client_id=_digest(dict(progress.head.fields).get(_CLIENT_ID, b"").decode("latin-1")),
        table=read.table,
        partition=read.partition,
        row=read.row,
        changes=read.changes,
        body=read.body,
        entities=rehearsed.seen.entities,
        status=status,
        error=error.code if error is not None else _refusal_code(progress),
        detail=error.details.get("AuthenticationErrorDetail", "") if error is not None else "",
        rules=tuple(rehearsed.struck),
        faulted=rehearsed.is_faulted,
        delivery=rehearsed.delivery or "",
        warnings=observed.warnings,
    )
    if request is not None:
        exchange.secondary = request.address.secondary
    _describe_query(exchange, read.options)
    answered = {name.lower(): value for name, value in headers}
    exchange.etag = answered.get(b"etag", b"").decode("latin-1")
    exchange.next_token = _digest(*(answered.get(name.lower(), b"").decode() for name in _CONTINUATION))
    exchange.retry_after = _retry_after(answered)
    if fault is not None:
        exchange.lag = fault.lag
    if exchange.operation in CHANGES:
        exchange.applied = rehearsed.is_run
    return exchange


def _refusal_code(progress: Progress) -> str:
    refusal = progress.observed.refusal
    return "" if refusal is None else refusal.code


def _describe_query(exchange: Exchange, options: Mapping[str, str]) -> None:
    exchange.token = _digest(*(options.get(name, "") for name in _TOKENS))
    shape = sorted((name, value) for name, value in options.items() if name in ("$filter", "$select", "$top"))
    exchange.query = _digest(*(f"{name}={value}" for name, value in shape))
    top = options.get("$top", "")
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
