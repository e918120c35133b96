"""The operations on entities: one change, one entity, or a page of them."""

from storage.domain.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entity import EntityKey, StoredEntity, fragments
from storage.domain.errors import InvalidInput, MethodNotAllowed, MissingRequiredHeader
from storage.domain.etag import read_if_match, write_etag
from storage.domain.names import fold_table_name
from storage.domain.query import EntityQuery
from storage.protocol import payload
from storage.protocol.call import JSON_ANSWER, Answer, Call, Headers
from storage.protocol.negotiation import Level, Preference, check_content_type, read_preference
from storage.protocol.query_options import read_entity_query, read_select, write_token
from storage.protocol.routes import Kind


async def collection(call: Call) -> Answer:
    match call.method:
        case "GET":
            return await query(call)
        case "POST":
            return await _change(call)
    raise MethodNotAllowed(Allow="GET, POST")


async def entity(call: Call) -> Answer:
    if call.method == "GET":
        return await get(call)
    return await _change(call)


async def get(call: Call) -> Answer:
    level = call.level()
    folded = fold_table_name(call.target.table)
    payload.check_keys(call.target.key, call.rules.key_length_limit)
    wanted = EntityQuery(select=read_select(call.options), annotations=level is not Level.NONE)
    found = await call.service.get(call.account, folded, call.target.key, wanted)
    body = payload.write_entity(call.context(level, call.target.table), found)
    return Answer(200, [JSON_ANSWER[level], (b"ETag", write_etag(found.timestamp).encode())], body)


async def query(call: Call) -> Answer:
    level = call.level()
    folded = fold_table_name(call.target.table)
    wanted = read_entity_query(call.options, annotations=level is not Level.NONE)
    page = await call.service.query(call.account, folded, wanted)
    headers = [JSON_ANSWER[level]]
    if page.next is not None:
        # both, also for an empty RowKey: some clients send back an empty parameter for a header they did not get
        partition_key, row_key = page.next
        headers.append((b"x-ms-continuation-NextPartitionKey", write_token(partition_key).encode()))
        headers.append((b"x-ms-continuation-NextRowKey", write_token(row_key).encode()))
    return Answer(200, headers, payload.write_page(call.context(level, call.target.table), page.entities))


async def _change(call: Call) -> Answer:
    folded = fold_table_name(call.target.table)
    change = read_change(call)
    timestamp = await call.service.change(call.account, folded, change)
    return write_changed(call, change, timestamp)


def read_change(call: Call) -> Change:
    """The write that a request, or a part of a batch, asks for."""
    if call.target.kind is Kind.ENTITIES:
        if call.method != "POST":
            raise MethodNotAllowed(Allow="GET, POST")
        check_content_type(call.headers.get(b"content-type"), call.body, call.version)
        return Insert(payload.read_new_entity(call.body, call.rules.key_length_limit))
    if call.method not in ("PUT", "MERGE", "PATCH", "DELETE"):
        raise MethodNotAllowed(Allow="GET, PUT, MERGE, PATCH, DELETE")
    _check_if_none_match(call)
    if_match = call.headers.get(b"if-match")
    if call.method == "DELETE":
        return _read_delete(call.target.key, if_match, call.rules.key_length_limit)
    check_content_type(call.headers.get(b"content-type"), call.body, call.version)
    merge = call.method != "PUT"
    if if_match is None:
        return Upsert(payload.read_entity(call.body, call.target.key, call.rules.key_length_limit), merge)
    condition = read_if_match(if_match.decode("latin-1"))
    return Update(
        payload.read_entity(call.body, call.target.key, call.rules.key_length_limit), condition, merge
    )


def _read_delete(key: EntityKey, if_match: bytes | None, key_limit: int) -> Delete:
    if if_match is None:
        # the service requires it; its code for this is not documented [inferred]
        raise MissingRequiredHeader(HeaderName="If-Match")
    payload.check_keys(key, key_limit)
    return Delete(key, read_if_match(if_match.decode("latin-1")))


def _check_if_none_match(call: Call) -> None:
    if b"if-none-match" not in call.headers:
        return
    if b"if-match" in call.headers:
        raise InvalidInput(
            "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. "
            "Please specify either one of the headers or none of them."
        )
    kind = "DELETE" if call.method == "DELETE" else "PUT"
    raise InvalidInput(f"If-None-Match HTTP header cannot be specified for {kind} operations.")


def write_changed(call: Call, change: Change, timestamp: int) -> Answer:
    if isinstance(change, Delete):
        return Answer(204, [])
    etag = (b"ETag", write_etag(timestamp).encode())
    if not isinstance(change, Insert):
        return Answer(204, [etag])
    return _write_inserted(call, change, timestamp, etag)


def _write_inserted(call: Call, change: Insert, timestamp: int, etag: tuple[bytes, bytes]) -> Answer:
    level = call.level()
    table = call.target.table
    location = f"{call.address.base}/{payload.entity_link(table, *change.key)}".encode()
    preference = read_preference(call.headers.get(b"prefer"), call.version)
    headers: Headers = []
    if preference.applied is not None:
        headers.append((b"Preference-Applied", preference.applied))
    headers.append((b"Location", location))
    if preference is Preference.NO_CONTENT:
        return Answer(204, [*headers, (b"DataServiceId", location), etag])
    _, annotations, values = fragments(change.entity.properties)
    content = (annotations + values if level is not Level.NONE else values).encode()
    stored = StoredEntity(*change.key, timestamp, content)
    body = payload.write_entity(call.context(level, table)._replace(select=None, raw_select=None), stored)
    return Answer(201, [JSON_ANSWER[level], *headers, etag], body)
