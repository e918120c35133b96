"""Entity group transactions: a change set, or a single query.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.domain.access.grants import Operation, operation_of
from storage.domain.entities.changes import (
    Change,
    Delete,
    Insert,
    Upsert,
    check_change_set,
    check_change_set_size,
)
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import (
    ChangeSetError,
    CommandsInBatchActOnDifferentPartitions,
    EntityAlreadyExists,
    InsufficientAccountPermissions,
    InvalidDuplicateRow,
    InvalidInput,
    MethodNotAllowed,
    RequestBodyTooLarge,
    ResourceNotFound,
    StorageError,
    TableNotFound,
    UpdateConditionNotSatisfied,
)
from storage.domain.requests.options import read_options
from storage.domain.requests.routes import (
    Target,
    TargetKind,
    inner_path,
    key_of,
    resolve_target,
)
from storage.protocol import cosmos, entities, multipart, strictness
from storage.protocol.accept import Format
from storage.protocol.call import Answer, Call, OperationRequest
from storage.protocol.errors import ErrorFormat, ErrorOrigin, write_error
from storage.protocol.http_request import Headers
from storage.protocol.multipart import AnswerPart, Part, PartHead
from storage.protocol.negotiation import (
    FIRST_WITHOUT_ATOM,
    OLDEST_VERSION,
    Preference,
    effective_method,
    read_preference,
    read_version,
    supported_options,
)
from storage.protocol.query_options import check_options

COSMOS_BATCH_LIMIT: Final = 2 * 1024 * 1024  # bytes
_WORTH_HALVING: Final = 20  # parts: the half of them is read while the others are written
_COSMOS_ORDER: Final = (b"ETag", b"Content-Type", b"Preference-Applied", b"Location")
_COMMON: Final = [(b"X-Content-Type-Options", b"nosniff"), (b"Cache-Control", b"no-cache")]

_QUERIES: Final = {TargetKind.ENTITY: Operation.QUERY_ENTITY, TargetKind.ENTITIES: Operation.QUERY_ENTITIES}

# a change set of one change reports these without an index, all other errors with one
_WITHOUT_INDEX: Final = (EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied)


async def handle_batch(call: Call) -> Answer:
    if call.request.method != "POST":
        raise MethodNotAllowed(Allow="POST")
    match multipart.read_batch(call.request.headers.get(b"content-type"), call.request.body):
        case multipart.Query(part):
            content_type, body = multipart.write_query(multipart.write_part(await _query(call, part)))
        case multipart.ChangeSet(parts) if call.dialect.is_cosmos:
            content_type, body = multipart.write_cosmos_change_set(await _cosmos_change_set(call, parts))
        case multipart.ChangeSet() if call.address.secondary:
            raise InsufficientAccountPermissions
        case multipart.ChangeSet(parts):
            content_type, body = multipart.write_change_set(await _change_set(call, parts))
    return Answer(202, [(b"Content-Type", content_type)], body)


class BatchContent(NamedTuple):
    """Content of a batch: changes with their folded tables, or the call of its query."""

    changes: list[tuple[str, Change]]
    query: Call | None = None


def read_content(call: Call) -> BatchContent:
    """Return what a batch asks for; raises the errors of reading it."""
    match multipart.read_batch(call.request.headers.get(b"content-type"), call.request.body):
        case multipart.Query(part):
            return BatchContent([], _inner_call(call, part))
        case multipart.ChangeSet(parts):
            operations: dict[int, _Operation] = {}
            changes = [_read_change(call, index, part, operations) for index, part in enumerate(parts)]
            tables = (operations[id(part.head)].table for part in parts)
            return BatchContent(list(zip(tables, changes, strict=True)))


def query_operation(target: Target) -> Operation:
    """Return the operation of a batch that is a query."""
    return _QUERIES.get(target.kind, Operation.QUERY_TABLES)


async def _query(call: Call, part: Part) -> AnswerPart:
    try:
        inner = _inner_call(call, part)
        target = inner.request.target
        inner.grant.check(query_operation(target), target.table.lower())
        if target.kind is TargetKind.ENTITY:
            answer = await entities.get(inner)
        elif target.kind is TargetKind.ENTITIES:
            answer = await entities.query(inner)
        else:
            raise InvalidInput
    except StorageError as refused:
        error = strictness.reword(call, part.target, refused)
        _observe_refusal(call, error, 0)
        return _write_failure(call, part, error, 0)
    version = _data_service_version(atom=inner.request.response_format() is Format.ATOM)
    headers: Headers = [version, *answer.headers[:1], *_COMMON, *answer.headers[1:]]
    return AnswerPart(answer.status, headers, answer.body)


class _Operation(NamedTuple):
    """Operation shared by parts with equal heads, without their keys and bodies; ``table`` is a folded name."""

    call: Call
    table: str
    head: PartHead
    reader: entities.ChangeReader


class _Applied(NamedTuple):
    """Applied change set, with the parts in order; ``operations`` are keyed by the identity of their heads."""

    operations: Mapping[int, _Operation]
    read: list[_Operation]
    changes: list[Change]
    timestamps: list[int]


async def _apply(call: Call, parts: list[Part]) -> _Applied:
    """Apply all changes atomically; raises TableNotFound first, then ChangeSetError."""
    operations: dict[int, _Operation] = {}
    changes: list[Change] = []
    read: list[_Operation] = []

    def read_up_to(end: int) -> list[Change]:
        begin = len(changes)
        for index in range(begin, end):
            changes.append(_read_change(call, index, parts[index], operations))
            read.append(operations[id(parts[index].head)])
        return changes[begin:]

    def read_and_check(end: int) -> list[Change]:
        part = read_up_to(end)
        try:
            check_change_set(
                [(operation.table, change) for operation, change in zip(read, changes, strict=True)]
            )
        except ChangeSetError:
            read_up_to(len(parts))  # a fault in one of them is reported first
            raise
        return part

    check_change_set_size(len(parts))
    await _check_table(call, parts[0])
    is_halved = len(parts) >= _WORTH_HALVING and not call.account.read_only
    first = read_and_check(len(parts) // 2 if is_halved else len(parts))
    call.observed.table = read[0].call.request.target.table
    call.observed.partition = first[0].key.partition_key
    try:
        timestamps = await call.service.apply(
            call.account,
            read[0].table,
            first,
            (lambda: read_and_check(len(parts))) if is_halved else None,
            by=call.actor(),
            terms=call.terms,
        )
    except ChangeSetError as failure:
        if failure.index < len(changes):
            entities.observe_refused_change(call, changes[failure.index])
        raise
    return _Applied(operations, read, changes, timestamps)


async def _cosmos_change_set(call: Call, parts: list[Part]) -> list[AnswerPart]:
    if len(call.request.body) > COSMOS_BATCH_LIMIT:
        raise RequestBodyTooLarge
    if not parts:
        return []
    try:
        applied = await _apply(call, parts)
    except TableNotFound as error:
        _observe_refusal(call, error, 0)
        return [_cosmos_failure(call, error, None)]
    except ChangeSetError as failure:
        _observe_refusal(call, failure.error, failure.index)
        if isinstance(failure.error, InvalidDuplicateRow):
            raise failure.error from None
        # the service blames the first change for being in another partition than the others
        is_split = isinstance(failure.error, CommandsInBatchActOnDifferentPartitions)
        return [_cosmos_failure(call, failure.error, 0 if is_split else failure.index)]
    return [
        _cosmos_answer(operation.call, change, timestamp, number)
        for number, (operation, change, timestamp) in enumerate(
            zip(applied.read, applied.changes, applied.timestamps, strict=True), start=1
        )
    ]


def _cosmos_answer(call: Call, change: Change, timestamp: int, number: int) -> AnswerPart:
    answer = entities.write_changed(call, change, timestamp)
    headers = sorted(answer.headers, key=lambda header: _COSMOS_ORDER.index(header[0]))
    if isinstance(change, Upsert):
        headers.append(cosmos.NO_CONTENT)
    # a number of its own, whatever Content-ID the client has sent
    return AnswerPart(answer.status, [*headers, (b"Content-ID", b"%d" % number)], answer.body)


def _cosmos_failure(call: Call, error: StorageError, index: int | None) -> AnswerPart:
    written = cosmos.write_error(error, call.observed.request_id, index)
    content_type = (b"Content-Type", cosmos.CONTENT_TYPES[Format.JSON_FULL])
    return AnswerPart(written.status, [content_type], written.body)


async def _change_set(call: Call, parts: list[Part]) -> list[bytes]:
    """Apply a change set and return its serialized responses; an empty one is valid."""
    if not parts:
        return []
    try:
        applied = await _apply(call, parts)
    except TableNotFound as error:
        _observe_refusal(call, error, 0)
        return [multipart.write_part(_write_failure(call, parts[0], error, 0))]
    except ChangeSetError as failure:
        part = parts[min(failure.index, len(parts) - 1)]
        _observe_refusal(call, failure.error, failure.index)
        index = failure.index if len(parts) > 1 or not isinstance(failure.error, _WITHOUT_INDEX) else None
        return [multipart.write_part(_write_failure(call, part, failure.error, index))]
    writers = {identity: _AnswerWriter(operation) for identity, operation in applied.operations.items()}
    return [
        writers[id(part.head)].write(change, timestamp)
        for part, change, timestamp in zip(parts, applied.changes, applied.timestamps, strict=True)
    ]


class _AnswerWriter:
    """Writer of the responses to successful parts with equal heads, which differ only in location, ETag and entity.

    The headers are in the order of the service: some clients split them by hand.
    """

    def __init__(self, operation: _Operation) -> None:
        self._call = operation.call
        self._common = [*_echo(operation.head), *_COMMON]
        self._inserts: entities.InsertAnswers | None = None
        self._start: bytes | None = None  # the beginning of every answer
        self._etag = (0, b"")

    def write(self, change: Change, timestamp: int) -> bytes:
        if self._start is None:
            self._start = self._write_start(change)
        if isinstance(change, Delete):
            return self._start + b"\r\n\r\n"
        if timestamp != self._etag[0]:
            self._etag = timestamp, self._call.etag(timestamp)[1]
        etag, inserts = self._etag[1], self._inserts
        if not isinstance(change, Insert) or inserts is None:
            return b"%bETag: %b\r\n\r\n\r\n" % (self._start, etag)
        location = inserts.location(change.key)
        if inserts.preference is Preference.NO_CONTENT:
            return b"%bLocation: %b\r\nDataServiceId: %b\r\nETag: %b\r\n\r\n\r\n" % (
                self._start, location, location, etag,
            )  # fmt: skip
        body = inserts.body(change, timestamp)
        return b"%bLocation: %b\r\nETag: %b\r\n\r\n%b\r\n" % (self._start, location, etag, body)

    def _write_start(self, change: Change) -> bytes:
        """Return the common beginning of all responses, given one of the changes."""
        if not isinstance(change, Insert):
            headers = [*self._common, _data_service_version(atom=True)]
            return multipart.write_part(AnswerPart(204, headers)).removesuffix(b"\r\n\r\n")
        inserts = self._inserts = entities.InsertAnswers(self._call)
        version = _data_service_version(atom=self._call.request.response_format() is Format.ATOM)
        if inserts.preference is Preference.NO_CONTENT:
            headers, status = [*self._common, *inserts.preference.headers, version], 204
        else:
            headers, status = [version, inserts.content_type, *self._common, *inserts.preference.headers], 201
        return multipart.write_part(AnswerPart(status, headers)).removesuffix(b"\r\n\r\n")


def _observe_refusal(call: Call, error: StorageError, index: int | None) -> None:
    call.observed.refusal, call.observed.refused_part = error, index


async def _check_table(call: Call, part: Part) -> None:
    """Raise TableNotFound, which takes precedence over errors of the entities."""
    try:
        folded = call.fold(_inner_call(call, part).request.target.table)
        call.grant.check(Operation.ENTITY_GROUP_TRANSACTION, folded)
    except StorageError:
        return  # reported with the index of its part, when that is read
    await call.service.check_table(call.account, folded)


def _read_change(call: Call, index: int, part: Part, operations: dict[int, _Operation]) -> Change:
    """Return the change of a part; operations of equal heads are cached in ``operations``."""
    try:
        operation = operations.get(id(part.head))
        if operation is None:
            operation = _read_operation(call, part)
            change = _read_body(operation, operation.call.request.target.key, part)
            operation.call.grant.check(operation_of(change), operation.table)
            operations[id(part.head)] = operation
        else:
            key = _NO_KEY
            if operation.call.request.target.kind is TargetKind.ENTITY:
                key = key_of(part.target) or _inner_call(call, part).request.target.key
            change = _read_body(operation, key, part)
        operation.call.grant.check_key(change.key)
    except StorageError as error:
        raise ChangeSetError(index, strictness.reword(call, part.target, error)) from None
    return change


_NO_KEY: Final = EntityKey("", "")


def _read_body(operation: _Operation, key: EntityKey, part: Part) -> Change:
    reader = operation.reader
    return reader.change(key, reader.members(part.body))


def _read_operation(call: Call, part: Part) -> _Operation:
    inner = _inner_call(call, part)
    request = inner.request
    if request.target.kind not in (TargetKind.ENTITY, TargetKind.ENTITIES):
        raise InvalidInput
    request.response_format()  # raises for a format that cannot be answered in
    reader = entities.ChangeReader(request, call.dialect)
    return _Operation(inner, inner.fold(request.target.table), part.head, reader)


def _tunnelled_methods(head: PartHead) -> tuple[bytes, ...]:
    """Return X-HTTP-Method of a part, unless it repeats the verb, as sent by Microsoft's older Java client."""
    value = head.headers.get(b"x-http-method")
    return () if value is None or value.strip().upper() == head.method.encode() else (value,)


def _inner_call(call: Call, part: Part) -> Call:
    head = part.head
    method = effective_method(head.method, _tunnelled_methods(head))
    version = _version(call.request, part)
    options = supported_options(read_options(part.target.partition(b"?")[2]), version)
    check_options(options)
    return call._replace(
        request=OperationRequest(
            method=method,
            target=resolve_target(
                inner_path(part.target, call.address), method, call.account.name, call.dialect.kind
            ),
            options=options,
            headers=head.headers,
            version=version,
            body=part.body,
        )
    )


def _version(batch: OperationRequest, part: Part) -> str:
    """Return the version of the batch.

    A batch that names none and does not use JSON itself leaves it to its parts.
    """
    if batch.version != OLDEST_VERSION or b"x-ms-version" in batch.headers:
        return batch.version
    return read_version(part.head.headers, _lenient_options(part))


def _data_service_version(*, atom: bool) -> tuple[bytes, bytes]:
    """Return the oldest version that can express the response, as 1.0-only clients refuse a newer one."""
    return b"DataServiceVersion", b"1.0;" if atom else b"3.0;"


def _write_failure(call: Call, part: Part, error: StorageError, index: int | None) -> AnswerPart:
    version = _lenient_version(call.request, part)
    written = write_error(
        error,
        ErrorOrigin.BATCH_PART,
        call.observed.request_id,
        format_option=_lenient_options(part).get("$format"),
        accept=part.head.headers.get(b"accept"),
        version=version,
        index=index,
    )
    # a refusal before an entity is looked at has fewer headers
    rest = (
        []
        if isinstance(error, _BEFORE_ENTITIES)
        else [*_COMMON[1:], *_preference(part.head, version).headers]
    )
    headers: Headers = [
        *_echo(part.head),
        _COMMON[0],
        *rest,
        _data_service_version(atom=written.format is ErrorFormat.XML and version < FIRST_WITHOUT_ATOM),
        (b"Content-Type", written.content_type),
    ]
    return AnswerPart(written.status, headers, written.body)


_BEFORE_ENTITIES: Final = (TableNotFound, MethodNotAllowed)


def _preference(part: PartHead, version: str) -> Preference:
    """Return the Prefer preference of an inserting part; other parts have none."""
    return (
        read_preference(part.headers.get(b"prefer"), version) if part.method == "POST" else Preference.ABSENT
    )


def _echo(part: PartHead) -> Headers:
    return [] if part.content_id is None else [(b"Content-ID", part.content_id)]


def _lenient_version(batch: OperationRequest, part: Part) -> str:
    try:
        return _version(batch, part)
    except StorageError:
        return batch.version


def _lenient_options(part: Part) -> dict[str, str]:
    try:
        return dict(read_options(part.target.partition(b"?")[2]))
    except StorageError:
        return {}
