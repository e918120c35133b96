"""Entity operations of the protocol: changes, point reads and queries."""

from collections.abc import Awaitable, Callable

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import EncodedProperties, EntityKey, StoredEntity, encode_entity_key
from storage.domain.errors import (
    InvalidInput,
    MethodNotAllowed,
    MissingRequiredHeader,
    PartKind,
    StorageError,
)
from storage.domain.requests.routes import TargetKind, key_count_error
from storage.domain.values.dialects import Dialect
from storage.domain.values.etag import read_if_match
from storage.domain.values.names import check_entity_key
from storage.protocol import as_of, formats, json_format, strictness
from storage.protocol.call import Answer, Call, OperationRequest
from storage.protocol.formats import Members
from storage.protocol.http_request import Headers
from storage.protocol.negotiation import FIRST_WITH_UPSERT, Preference, read_preference
from storage.protocol.query_options import read_entity_query, read_point_query, write_position


def handle_entity_set(call: Call) -> Awaitable[Answer]:
    match call.request.method:
        case "GET":
            strictness.check_accept(call)
            return query(call)
        case "POST":
            return _change(call)
    raise MethodNotAllowed(Allow="GET, POST")


def handle_entity(call: Call) -> Awaitable[Answer]:
    if call.request.method != "GET":
        return _change(call)
    strictness.check_accept(call)
    return get(call)


async def refuse_entity_without_keys(call: Call) -> Answer:
    """Refuse an entity URL without keys, with TableNotFound first, which clients that delete tables rely on."""
    table = call.request.target.table
    await call.service.check_table(call.account, call.fold(table))
    raise key_count_error(f"{call.account.name}.{table}")


async def get(call: Call) -> Answer:
    request, target = call.request, call.request.target
    form = request.response_format()
    folded = call.fold(target.table)
    check_entity_key(*target.key, call.dialect)
    call.grant.check_key(target.key, reads=True)
    call.observed.partition = target.key.partition_key
    point_query = read_point_query(request.options, call.dialect, annotations=form.annotations)
    strictness.check_query(call, point_query.filter)
    moment = as_of.read(request)
    try:
        entity = await call.service.get(
            call.account,
            folded,
            target.key,
            point_query,
            moment,
            call.terms,
            includes_deleted=call.grant.reads_deleted_tables,
        )
    except StorageError:
        if moment is None:  # a later deletion would not explain it
            call.observed.refused_key = target.key
        raise
    body = formats.write_entity(call.context(form, target.table), entity)
    headers = [call.content_type(form), call.etag(int(entity.ticks)), *as_of.write(moment, call.dialect)]
    return Answer(200, headers, body)


async def query(call: Call) -> Answer:
    table = call.request.target.table
    form = call.request.response_format()
    folded = call.fold(table)
    entity_query = read_entity_query(call.request.options, call.dialect, annotations=form.annotations)
    call.observed.query = entity_query
    strictness.check_query(call, entity_query.filter)
    moment = as_of.read(call.request)
    page = await call.service.query(
        call.account,
        folded,
        call.grant.keys.narrow(entity_query),
        moment,
        call.terms,
        includes_deleted=call.grant.reads_deleted_tables,
    )
    call.observed.entities = len(page.entities)
    body, following = formats.write_page(call.context(form, table), page)
    headers = [call.content_type(form), *as_of.write(moment, call.dialect)]
    if following is not None:
        # both, also for an empty RowKey: some clients send back an empty parameter for a missing header
        partition, row = write_position(following, call.dialect)
        headers.append((b"x-ms-continuation-NextPartitionKey", partition.encode()))
        headers.append((b"x-ms-continuation-NextRowKey", row.encode()))
    return Answer(200, headers, body)


async def _change(call: Call) -> Answer:
    folded = call.fold(call.request.target.table)
    reader = ChangeReader(call.request, call.dialect)
    if call.request.method != "DELETE":
        strictness.check_content_type(call)
    members = reader.members(call.request.body)
    # a missing table is reported before anything that is wrong with the entity, except unreadable JSON
    await call.service.check_table(call.account, folded)
    change = reader.change(call.request.target.key, members)
    call.grant.check_key(change.key)
    call.observed.partition = change.key.partition_key
    if isinstance(change, Insert):
        call.request.response_format()  # raises for a format that cannot be answered in, before anything is written
    try:
        timestamp = await call.service.change(call.account, folded, change, by=call.actor(), terms=call.terms)
    except StorageError:
        observe_refused_change(call, change)
        raise
    return write_changed(call, change, timestamp)


def observe_refused_change(call: Call, change: Change) -> None:
    """Note the entity of a refused change, so that the request log can show its earlier changes."""
    call.observed.refused_key = change.key
    if isinstance(change, Update | Delete):
        call.observed.expected = change.condition.expected


_Make = Callable[[EntityKey, Members | EncodedProperties], Change]


class ChangeReader:
    """Reader of changes whose requests differ only in keys and bodies."""

    def __init__(self, request: OperationRequest, dialect: Dialect) -> None:
        """Create a reader from one of the requests; raises MethodNotAllowed."""
        kind, method = request.target.kind, request.method
        if kind is TargetKind.ENTITIES and method != "POST":
            raise MethodNotAllowed(Allow="GET, POST")
        if kind is TargetKind.ENTITY and method not in ("PUT", "MERGE", "PATCH", "DELETE"):
            raise MethodNotAllowed(Allow="GET, PUT, MERGE, PATCH, DELETE")
        self._request = request
        self._dialect = dialect
        self._content_type = request.headers.get(b"content-type")
        self._make: _Make | None = None

    def members(self, body: bytes) -> Members | EncodedProperties:
        """Parse the properties in the body of a write; a deletion has none."""
        request = self._request
        if request.method == "DELETE":
            return {}
        return formats.read_entity(self._content_type, body, request.version, self._dialect)

    def change(self, key: EntityKey, members: Members | EncodedProperties) -> Change:
        if self._make is None:
            self._make = self._maker()
        return self._make(key, members)

    def _maker(self) -> _Make:
        """Return the function that makes the changes; raises errors that do not depend on the body."""
        request, dialect = self._request, self._dialect
        as_of.refuse(request)
        if request.target.kind is TargetKind.ENTITIES:
            return lambda _, members: Insert(json_format.read_new_entity(members, dialect))
        _check_if_none_match(request)
        if_match = request.headers.get(b"if-match")
        try:
            condition = None if if_match is None else read_if_match(if_match.decode("latin-1"))
        except StorageError as error:
            error.within(PartKind.HEADER, "If-Match")
            raise
        merge = request.method != "PUT"
        if condition is None:
            if request.method == "DELETE" or request.version < FIRST_WITH_UPSERT:
                # the service requires it; its code for this is not documented [inferred]
                raise MissingRequiredHeader(HeaderName="If-Match")
            return lambda key, members: Upsert(json_format.read_entity(members, key, dialect), merge)
        if request.method == "DELETE":
            return lambda key, _: Delete(json_format.checked_key(key, dialect), condition)
        return lambda key, members: Update(json_format.read_entity(members, key, dialect), condition, merge)


def _check_if_none_match(request: OperationRequest) -> None:
    if b"if-none-match" not in request.headers:
        return
    if b"if-match" in request.headers:
        raise InvalidInput(
            "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. "
            "Please specify either one of the headers or none of them."
        ).within(PartKind.HEADER, "If-None-Match")
    kind = "DELETE" if request.method == "DELETE" else "PUT"
    text = f"If-None-Match HTTP header cannot be specified for {kind} operations."
    raise InvalidInput(text).within(PartKind.HEADER, "If-None-Match")


def write_changed(call: Call, change: Change, timestamp: int) -> Answer:
    if isinstance(change, Delete):
        return Answer(204, [])
    etag = call.etag(timestamp)
    if not isinstance(change, Insert):
        return Answer(204, [etag])
    answers = InsertAnswers(call)
    location = answers.location(change.key)
    headers: Headers = [*answers.preference.headers, (b"Location", location)]
    if answers.preference is Preference.NO_CONTENT:
        return Answer(204, [*headers, *call.data_service_id(location), etag])
    return Answer(201, [answers.content_type, *headers, etag], answers.body(change, timestamp))


class InsertAnswers:
    """Responses to inserts that differ only in their bodies, from the call of one of them."""

    def __init__(self, call: Call) -> None:
        request, table = call.request, call.request.target.table
        form = request.response_format()
        self.preference = read_preference(request.headers.get(b"prefer"), request.version)
        self.content_type = call.content_type(form)
        self._context = call.context(form, table)._replace(select=None, raw_select=None)
        self._base, self._table = call.address.base, table

    def location(self, key: EntityKey) -> bytes:
        """Return the URI of an inserted entity."""
        link = json_format.entity_link(self._table, *key)
        if self._context.dialect.is_cosmos:
            link = link.replace("%40", "@")  # as it writes a Location, but no other link
        return f"{self._base}/{link}".encode()

    def body(self, change: Insert, timestamp: int) -> bytes:
        content = change.entity.fragments.content.encode()
        stored = StoredEntity(encode_entity_key(change.key), b"%d" % timestamp, content)
        return formats.write_entity(self._context, stored)
