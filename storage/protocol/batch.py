"""Entity group transactions: a change set, or a single query.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from typing import Final

from storage.domain.access.grants import Operation, operation_of
from storage.domain.entities.changes import Change, check_change_set, check_change_set_size
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    InvalidInput,
    MethodNotAllowed,
    ResourceNotFound,
    StorageError,
    TableNotFound,
    UpdateConditionNotSatisfied,
)
from storage.domain.requests import observed
from storage.domain.requests.options import read_options
from storage.domain.requests.routes import TargetKind, inner_path, resolve_operation, resolve_target
from storage.domain.requests.statuses import status_of
from storage.domain.values.names import fold_table_name
from storage.protocol import entities, multipart
from storage.protocol.accept import Format
from storage.protocol.call import Answer, Call, Headers
from storage.protocol.errors import write_error
from storage.protocol.multipart import AnswerPart, Part
from storage.protocol.negotiation import (
    FIRST_WITHOUT_ATOM,
    OLDEST_VERSION,
    ErrorFormat,
    Source,
    effective_method,
    error_format,
    heeded_options,
    read_version,
)
from storage.protocol.query_options import check_options

_COMMON: Final = [(b"X-Content-Type-Options", b"nosniff"), (b"Cache-Control", b"no-cache")]

_QUERIES: Final = {TargetKind.ENTITY: Operation.QUERY_ENTITY, TargetKind.ENTITIES: Operation.QUERY_ENTITIES}

# a change set of one change reports these as if it were no change set, the others with its index
_WITHOUT_INDEX: Final = (EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied)


async def batch(call: Call, request_id: str, now: int) -> Answer:
    """``now`` in ticks since 1970."""
    if call.method != "POST":
        raise MethodNotAllowed(Allow="POST")
    match multipart.read_batch(call.headers.get(b"content-type"), call.body):
        case multipart.Query(part):
            content_type, body = multipart.write_query(await _query(call, part, request_id, now))
        case multipart.ChangeSet(parts):
            answers = await _change_set(call, parts, request_id, now)
            content_type, body = multipart.write_change_set(answers)
    return Answer(202, [(b"Content-Type", content_type)], body)


async def _query(call: Call, part: Part, request_id: str, now: int) -> AnswerPart:
    try:
        inner = _inner(call, part)
        inner.grant.check(_QUERIES.get(inner.target.kind, Operation.QUERY_TABLES), inner.target.table.lower())
        if inner.target.kind is TargetKind.ENTITY:
            answer = await entities.get(inner)
        elif inner.target.kind is TargetKind.ENTITIES:
            answer = await entities.query(inner)
        else:
            raise InvalidInput
    except StorageError as error:
        return _failed(call, part, error, request_id, now, 0)
    version = _data_service_version(atom=inner.format() is Format.ATOM)
    headers: Headers = [version, *answer.headers[:1], *_COMMON, *answer.headers[1:]]
    return AnswerPart(answer.status, headers, answer.body)


async def _change_set(call: Call, parts: list[Part], request_id: str, now: int) -> list[AnswerPart]:
    try:
        check_change_set_size(len(parts))
        await _check_table(call, parts[0])
        read = [_read_change(call, index, part) for index, part in enumerate(parts)]
        changes = [change for _, _, change in read]
        table = read[0][1]
        check_change_set([(its_table, change) for _, its_table, change in read])
        timestamps = await call.service.apply(call.account, table, changes)
    except TableNotFound as error:
        _observe_failure(call, parts[0], error)
        return [_failed(call, parts[0], error, request_id, now, 0)]
    except ChangeSetError as failure:
        part = parts[min(failure.index, len(parts) - 1)]
        _observe_failure(call, part, failure.error)
        index = failure.index if len(parts) > 1 or not isinstance(failure.error, _WITHOUT_INDEX) else None
        return [_failed(call, part, failure.error, request_id, now, index)]
    answers = [entities.write_changed(i, c, t) for (i, _, c), t in zip(read, timestamps, strict=True)]
    if call.account.properties.logging.write:
        call.observed.parts = [
            observed.ObservedOperation(operation_of(change), answer.status, "", _resource(inner, change.key))
            for (inner, _, change), answer in zip(read, answers, strict=True)
        ]
    return [
        _changed(part, inner, answer)
        for part, (inner, _, _), answer in zip(parts, read, answers, strict=True)
    ]


def _observe_failure(call: Call, part: Part, error: StorageError) -> None:
    """The one part that has an answer."""
    if not call.account.properties.logging.write:
        return
    try:
        inner = _inner(call, part)
    except StorageError:
        known, resource = None, f"/{call.account.name}"
    else:
        conditional = b"if-match" in part.headers
        known = resolve_operation(inner.target, inner.method, inner.options, conditional=conditional)
        resource = _resource(inner, inner.target.key)
    call.observed.parts = [observed.ObservedOperation(known, status_of(error), error.code, resource)]


def _resource(inner: Call, key: EntityKey) -> str:
    return f"/{inner.account.name}/{inner.target.table}(PartitionKey='{key.partition_key}',RowKey='{key.row_key}')"


async def _check_table(call: Call, part: Part) -> None:
    """Raises TableNotFound, which goes before whatever else is wrong with the entities."""
    try:
        folded = fold_table_name(_inner(call, part).target.table)
        call.grant.check(Operation.ENTITY_GROUP_TRANSACTION, folded)
    except StorageError:
        return  # said of its part, with its index, when that is read
    await call.service.check_table(call.account, folded)


def _read_change(call: Call, index: int, part: Part) -> tuple[Call, str, Change]:
    """The part as a call, the folded name of its table, and what it asks for."""
    try:
        inner = _inner(call, part)
        if inner.target.kind not in (TargetKind.ENTITY, TargetKind.ENTITIES):
            raise InvalidInput
        inner.format()
        table = fold_table_name(inner.target.table)
        change = entities.read_change(inner, entities.read_members(inner))
        inner.grant.check(operation_of(change), table)
        inner.grant.check_key(change.key)
        return inner, table, change
    except StorageError as error:
        raise ChangeSetError(index, error) from None


def _inner(call: Call, part: Part) -> Call:
    tunnelled = part.headers.get(b"x-http-method")
    method = effective_method(part.method, () if tunnelled is None else (tunnelled,))
    version = _version(call, part)
    options = heeded_options(read_options(part.target.partition(b"?")[2]), version)
    check_options(options)
    return call._replace(
        method=method,
        target=resolve_target(inner_path(part.target, call.address), method, call.account.name),
        options=options,
        headers=part.headers,
        version=version,
        body=part.body,
    )


def _version(call: Call, part: Part) -> str:
    """Of the batch; where that names none and does not speak JSON itself, its parts still may."""
    if call.version != OLDEST_VERSION or b"x-ms-version" in call.headers:
        return call.version
    return read_version(part.headers, _lenient_options(part))


def _changed(part: Part, inner: Call, answer: Answer) -> AnswerPart:
    """The headers in the order of the service; clients that split by hand are known."""
    inserted = any(name == b"Location" for name, _ in answer.headers)
    version = _data_service_version(atom=not inserted or inner.format() is Format.ATOM)
    echo = _echo(part)
    if answer.body:
        return AnswerPart(
            answer.status, [version, answer.headers[0], *echo, *_COMMON, *answer.headers[1:]], answer.body
        )
    applied = [header for header in answer.headers if header[0] == b"Preference-Applied"]
    others = [header for header in answer.headers if header[0] != b"Preference-Applied"]
    return AnswerPart(answer.status, [*echo, *_COMMON, *applied, version, *others])


def _data_service_version(*, atom: bool) -> tuple[bytes, bytes]:
    """The older one for what it can say, and for clients that know no other: they refuse a newer one."""
    return b"DataServiceVersion", b"1.0;" if atom else b"3.0;"


def _failed(
    call: Call, part: Part, error: StorageError, request_id: str, now: int, index: int | None
) -> AnswerPart:
    version = _lenient_version(call, part)
    form = error_format(
        Source.PART, _lenient_options(part).get("$format"), part.headers.get(b"accept"), version
    )
    atom = form is ErrorFormat.XML and version < FIRST_WITHOUT_ATOM
    answer = write_error(error, form, request_id, now, index)
    headers: Headers = [
        *_echo(part),
        *_COMMON,
        _data_service_version(atom=atom),
        (b"Content-Type", answer.content_type),
    ]
    return AnswerPart(answer.status, headers, answer.body)


def _echo(part: Part) -> Headers:
    return [] if part.content_id is None else [(b"Content-ID", part.content_id)]


def _lenient_version(call: Call, part: Part) -> str:
    try:
        return _version(call, part)
    except StorageError:
        return call.version


def _lenient_options(part: Part) -> dict[str, str]:
    try:
        return dict(read_options(part.target.partition(b"?")[2]))
    except StorageError:
        return {}
