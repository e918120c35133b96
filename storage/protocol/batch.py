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
from storage.domain.values.names import fold_table_name
from storage.protocol import entities, multipart
from storage.protocol.accept import Format
from storage.protocol.call import Answer, Call, OperationRequest
from storage.protocol.errors import ErrorFormat, ErrorOrigin, write_error
from storage.protocol.http_request import Headers
from storage.protocol.multipart import AnswerPart, Part
from storage.protocol.negotiation import (
    FIRST_WITHOUT_ATOM,
    OLDEST_VERSION,
    effective_method,
    read_version,
    supported_options,
)
from storage.protocol.query_options import check_options

_COMMON: Final = [(b"X-Content-Type-Options", b"nosniff"), (b"Cache-Control", b"no-cache")]

_QUERIES: Final = {TargetKind.ENTITY: Operation.QUERY_ENTITY, TargetKind.ENTITIES: Operation.QUERY_ENTITIES}

# a change set of one change reports these without an index, all other errors with one
_WITHOUT_INDEX: Final = (EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied)


async def handle_batch(call: Call) -> Answer:
    if call.request.method != "POST":
        raise MethodNotAllowed(Allow="POST")
    match multipart.read_batch(call.request.headers.get(b"content-type"), call.request.body):
        case multipart.Query(part):
            content_type, body = multipart.write_query(await _query(call, part))
        case multipart.ChangeSet(parts):
            content_type, body = multipart.write_change_set(await _change_set(call, parts))
    return Answer(202, [(b"Content-Type", content_type)], body)


async def _query(call: Call, part: Part) -> AnswerPart:
    try:
        inner = _inner_call(call, part)
        target = inner.request.target
        inner.grant.check(_QUERIES.get(target.kind, Operation.QUERY_TABLES), target.table.lower())
        if target.kind is TargetKind.ENTITY:
            answer = await entities.get(inner)
        elif target.kind is TargetKind.ENTITIES:
            answer = await entities.query(inner)
        else:
            raise InvalidInput
    except StorageError as error:
        return _write_failure(call, part, error, 0)
    version = _data_service_version(atom=inner.request.response_format() is Format.ATOM)
    headers: Headers = [version, *answer.headers[:1], *_COMMON, *answer.headers[1:]]
    return AnswerPart(answer.status, headers, answer.body)


async def _change_set(call: Call, parts: list[Part]) -> list[AnswerPart]:
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
        return [_write_failure(call, parts[0], error, 0)]
    except ChangeSetError as failure:
        part = parts[min(failure.index, len(parts) - 1)]
        _observe_failure(call, part, failure.error)
        index = failure.index if len(parts) > 1 or not isinstance(failure.error, _WITHOUT_INDEX) else None
        return [_write_failure(call, part, failure.error, index)]
    answers = [
        entities.write_changed(inner, change, timestamp)
        for (inner, _, change), timestamp in zip(read, timestamps, strict=True)
    ]
    if call.account.properties.logging.write:
        call.observed.parts = [
            observed.ObservedOperation(operation_of(change), answer.status, "", _resource(inner, change.key))
            for (inner, _, change), answer in zip(read, answers, strict=True)
        ]
    return [
        _write_success(part, inner.request, answer)
        for part, (inner, _, _), answer in zip(parts, read, answers, strict=True)
    ]


def _observe_failure(call: Call, part: Part, error: StorageError) -> None:
    """Log the failed part, the only one that is answered."""
    if not call.account.properties.logging.write:
        return
    try:
        inner = _inner_call(call, part)
    except StorageError:
        known, resource = None, f"/{call.account.name}"
    else:
        request = inner.request
        conditional = b"if-match" in part.headers
        known = resolve_operation(request.target, request.method, request.options, conditional=conditional)
        resource = _resource(inner, request.target.key)
    call.observed.parts = [observed.ObservedOperation(known, error.status, error.code, resource)]


def _resource(inner: Call, key: EntityKey) -> str:
    table = inner.request.target.table
    return f"/{inner.account.name}/{table}(PartitionKey='{key.partition_key}',RowKey='{key.row_key}')"


async def _check_table(call: Call, part: Part) -> None:
    """Raise TableNotFound, which is reported before anything that is wrong with the entities."""
    try:
        folded = fold_table_name(_inner_call(call, part).request.target.table)
        call.grant.check(Operation.ENTITY_GROUP_TRANSACTION, folded)
    except StorageError:
        return  # reported with the index of its part, when that is read
    await call.service.check_table(call.account, folded)


def _read_change(call: Call, index: int, part: Part) -> tuple[Call, str, Change]:
    """The part as a call, the folded name of its table, and the change it asks for."""
    try:
        inner = _inner_call(call, part)
        request = inner.request
        if request.target.kind not in (TargetKind.ENTITY, TargetKind.ENTITIES):
            raise InvalidInput
        request.response_format()  # raises for a format that cannot be answered in
        table = fold_table_name(request.target.table)
        change = entities.read_change(request, entities.read_members(request), call.settings.key_length_limit)
        inner.grant.check(operation_of(change), table)
        inner.grant.check_key(change.key)
        return inner, table, change
    except StorageError as error:
        raise ChangeSetError(index, error) from None


def _inner_call(call: Call, part: Part) -> Call:
    tunnelled = part.headers.get(b"x-http-method")
    method = effective_method(part.method, () if tunnelled is None else (tunnelled,))
    version = _version(call.request, part)
    options = supported_options(read_options(part.target.partition(b"?")[2]), version)
    check_options(options)
    return call._replace(
        request=OperationRequest(
            method=method,
            target=resolve_target(inner_path(part.target, call.address), method, call.account.name),
            options=options,
            headers=part.headers,
            version=version,
            body=part.body,
        )
    )


def _version(batch: OperationRequest, part: Part) -> str:
    """The version of the batch; a batch that names none and does not use JSON itself leaves it to its parts."""
    if batch.version != OLDEST_VERSION or b"x-ms-version" in batch.headers:
        return batch.version
    return read_version(part.headers, _lenient_options(part))


def _write_success(part: Part, request: OperationRequest, answer: Answer) -> AnswerPart:
    """The headers in the order of the service: some clients split them by hand."""
    inserted = any(name == b"Location" for name, _ in answer.headers)
    version = _data_service_version(atom=not inserted or request.response_format() is Format.ATOM)
    echo = _echo(part)
    if answer.body:
        return AnswerPart(
            answer.status, [version, answer.headers[0], *echo, *_COMMON, *answer.headers[1:]], answer.body
        )
    applied = [header for header in answer.headers if header[0] == b"Preference-Applied"]
    others = [header for header in answer.headers if header[0] != b"Preference-Applied"]
    return AnswerPart(answer.status, [*echo, *_COMMON, *applied, version, *others])


def _data_service_version(*, atom: bool) -> tuple[bytes, bytes]:
    """The oldest that can express the answer: clients that know only 1.0 refuse a newer one."""
    return b"DataServiceVersion", b"1.0;" if atom else b"3.0;"


def _write_failure(call: Call, part: Part, error: StorageError, index: int | None) -> AnswerPart:
    version = _lenient_version(call.request, part)
    written = write_error(
        error,
        ErrorOrigin.BATCH_PART,
        call.observed.request_id,
        format_option=_lenient_options(part).get("$format"),
        accept=part.headers.get(b"accept"),
        version=version,
        index=index,
    )
    headers: Headers = [
        *_echo(part),
        *_COMMON,
        _data_service_version(atom=written.format is ErrorFormat.XML and version < FIRST_WITHOUT_ATOM),
        (b"Content-Type", written.content_type),
    ]
    return AnswerPart(written.status, headers, written.body)


def _echo(part: Part) -> Headers:
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
