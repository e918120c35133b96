"""Entity group transactions: a change set, or a single query.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from typing import Final

from storage.domain.changes import Change, check_change_set, check_size_of_change_set
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
from storage.domain.names import fold_table_name
from storage.protocol import entities, multipart
from storage.protocol.call import Answer, Call, Headers
from storage.protocol.errors import write_error
from storage.protocol.multipart import AnswerPart, Part
from storage.protocol.negotiation import Source, effective_method, error_format
from storage.protocol.query_options import check_options, read_options
from storage.protocol.routes import Kind, inner_path, target

_COMMON: Final = [(b"X-Content-Type-Options", b"nosniff"), (b"Cache-Control", b"no-cache")]

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
        if inner.target.kind is Kind.ENTITY:
            answer = await entities.get(inner)
        elif inner.target.kind is Kind.ENTITIES:
            answer = await entities.query(inner)
        else:
            raise InvalidInput
    except StorageError as error:
        return _failed(part, error, request_id, now, 0)
    headers: Headers = [(b"DataServiceVersion", b"3.0;"), *answer.headers[:1], *_COMMON, *answer.headers[1:]]
    return AnswerPart(answer.status, headers, answer.body)


async def _change_set(call: Call, parts: list[Part], request_id: str, now: int) -> list[AnswerPart]:
    try:
        check_size_of_change_set(len(parts))
        await _check_table(call, parts[0])
        read = [_read_change(call, index, part) for index, part in enumerate(parts)]
        changes = [change for _, _, change in read]
        table = read[0][1]
        check_change_set([(its_table, change) for _, its_table, change in read])
        timestamps = await call.service.apply(call.account, table, changes)
    except TableNotFound as error:
        return [_failed(parts[0], error, request_id, now, 0)]
    except ChangeSetError as failure:
        part = parts[min(failure.index, len(parts) - 1)]
        index = failure.index if len(parts) > 1 or not isinstance(failure.error, _WITHOUT_INDEX) else None
        return [_failed(part, failure.error, request_id, now, index)]
    return [
        _changed(part, entities.write_changed(inner, change, timestamp))
        for part, (inner, _, change), timestamp in zip(parts, read, timestamps, strict=True)
    ]


async def _check_table(call: Call, part: Part) -> None:
    """Raises TableNotFound, which goes before whatever else is wrong with the entities."""
    try:
        folded = fold_table_name(_inner(call, part).target.table)
    except StorageError:
        return  # said of its part, with its index, when that is read
    await call.service.check_table(call.account, folded)


def _read_change(call: Call, index: int, part: Part) -> tuple[Call, str, Change]:
    """The part as a call, the folded name of its table, and what it asks for."""
    try:
        inner = _inner(call, part)
        if inner.target.kind not in (Kind.ENTITY, Kind.ENTITIES):
            raise InvalidInput
        inner.level()
        return (
            inner,
            fold_table_name(inner.target.table),
            entities.read_change(inner, entities.read_members(inner)),
        )
    except StorageError as error:
        raise ChangeSetError(index, error) from None


def _inner(call: Call, part: Part) -> Call:
    tunnelled = part.headers.get(b"x-http-method")
    method = effective_method(part.method, () if tunnelled is None else (tunnelled,))
    options = read_options(part.target.partition(b"?")[2])
    check_options(options)
    return call._replace(
        method=method,
        target=target(inner_path(part.target, call.address), method, call.account.name),
        options=options,
        headers=part.headers,
        body=part.body,
    )


def _changed(part: Part, answer: Answer) -> AnswerPart:
    """The headers in the order of the service; clients that split by hand are known."""
    inserted = any(name == b"Location" for name, _ in answer.headers)
    version = (b"DataServiceVersion", b"3.0;" if inserted else b"1.0;")
    echo = _echo(part)
    if answer.body:
        return AnswerPart(
            answer.status, [version, answer.headers[0], *echo, *_COMMON, *answer.headers[1:]], answer.body
        )
    applied = [header for header in answer.headers if header[0] == b"Preference-Applied"]
    others = [header for header in answer.headers if header[0] != b"Preference-Applied"]
    return AnswerPart(answer.status, [*echo, *_COMMON, *applied, version, *others])


def _failed(part: Part, error: StorageError, request_id: str, now: int, index: int | None) -> AnswerPart:
    options = _lenient_options(part)
    form = error_format(Source.PART, options.get("$format"), part.headers.get(b"accept"))
    answer = write_error(error, form, request_id, now, index)
    headers: Headers = [
        *_echo(part),
        *_COMMON,
        (b"DataServiceVersion", b"3.0;"),
        (b"Content-Type", answer.content_type),
    ]
    return AnswerPart(answer.status, headers, answer.body)


def _echo(part: Part) -> Headers:
    return [] if part.content_id is None else [(b"Content-ID", part.content_id)]


def _lenient_options(part: Part) -> dict[str, str]:
    try:
        return dict(read_options(part.target.partition(b"?")[2]))
    except StorageError:
        return {}
