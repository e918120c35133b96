"""The operations on entities: one change, one entity, or a page of them."""

from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import StoredEntity, encode_entity_key, write_fragments
from storage.domain.errors import InvalidInput, MethodNotAllowed, MissingRequiredHeader
from storage.domain.filters.query import EntityQuery
from storage.domain.requests.routes import TargetKind, key_count_error
from storage.domain.values.etag import read_if_match, write_etag
from storage.domain.values.names import fold_table_name
from storage.protocol import formats, payload
from storage.protocol.call import CONTENT_TYPES, Answer, Call, Headers
from storage.protocol.formats import Members
from storage.protocol.negotiation import FIRST_WITH_UPSERT, Preference, read_preference
from storage.protocol.query_options import read_entity_query, read_select, write_token


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


async def unnamed(call: Call) -> Answer:
    """Clients that delete a table by the URL of a table take no table for success, and only that."""
    await call.service.check_table(call.account, fold_table_name(call.target.table))
    raise key_count_error(f"{call.account.name}.{call.target.table}")


async def get(call: Call) -> Answer:
    form = call.format()
    folded = fold_table_name(call.target.table)
    payload.check_keys(call.target.key, call.rules.key_length_limit)
    call.grant.check_key(call.target.key)
    wanted = EntityQuery(select=read_select(call.options), annotations=form.annotations)
    found = await call.service.get(call.account, folded, call.target.key, wanted)
    body = formats.write_entity(call.context(form, call.target.table), found)
    return Answer(200, [CONTENT_TYPES[form], (b"ETag", write_etag(int(found.ticks)).encode())], body)


async def query(call: Call) -> Answer:
    form = call.format()
    folded = fold_table_name(call.target.table)
    wanted = read_entity_query(call.options, annotations=form.annotations)
    page = await call.service.query(call.account, folded, call.grant.keys.narrow(wanted))
    headers = [CONTENT_TYPES[form]]
    if page.next is not None:
        # both, also for an empty RowKey: some clients send back an empty parameter for a header they did not get
        partition_key, row_key = page.next
        headers.append((b"x-ms-continuation-NextPartitionKey", write_token(partition_key).encode()))
        headers.append((b"x-ms-continuation-NextRowKey", write_token(row_key).encode()))
    return Answer(200, headers, formats.write_page(call.context(form, call.target.table), page.entities))


async def _change(call: Call) -> Answer:
    folded = fold_table_name(call.target.table)
    members = read_members(call)
    # a missing table goes before whatever is wrong with the entity, but for JSON that cannot be read
    await call.service.check_table(call.account, folded)
    change = read_change(call, members)
    call.grant.check_key(change.key)
    timestamp = await call.service.change(call.account, folded, change)
    return write_changed(call, change, timestamp)


def read_members(call: Call) -> Members:
    """The properties in the body of a write; a deletion has none."""
    if call.target.kind is TargetKind.ENTITIES and call.method != "POST":
        raise MethodNotAllowed(Allow="GET, POST")
    if call.target.kind is TargetKind.ENTITY and call.method not in ("PUT", "MERGE", "PATCH", "DELETE"):
        raise MethodNotAllowed(Allow="GET, PUT, MERGE, PATCH, DELETE")
    if call.method == "DELETE":
        return {}
    return formats.read_object(call.headers.get(b"content-type"), call.body, call.version)


def read_change(call: Call, members: Members) -> Change:
    """The write that a request, or a part of a batch, asks for."""
    key_limit = call.rules.key_length_limit
    if call.target.kind is TargetKind.ENTITIES:
        return Insert(payload.read_new_entity(members, key_limit))
    _check_if_none_match(call)
    if_match = call.headers.get(b"if-match")
    condition = None if if_match is None else read_if_match(if_match.decode("latin-1"))
    if condition is None:
        if call.method == "DELETE" or call.version < FIRST_WITH_UPSERT:
            # the service requires it; its code for this is not documented [inferred]
            raise MissingRequiredHeader(HeaderName="If-Match")
    elif call.method == "DELETE":
        payload.check_keys(call.target.key, key_limit)
        return Delete(call.target.key, condition)
    entity = payload.read_entity(members, call.target.key, key_limit)
    merge = call.method != "PUT"
    return Upsert(entity, merge) if condition is None else Update(entity, condition, merge)


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
    form = call.format()
    table = call.target.table
    location = f"{call.address.base}/{payload.entity_link(table, *change.key)}".encode()
    preference = read_preference(call.headers.get(b"prefer"), call.version)
    headers: Headers = []
    if preference.applied is not None:
        headers.append((b"Preference-Applied", preference.applied))
    headers.append((b"Location", location))
    if preference is Preference.NO_CONTENT:
        return Answer(204, [*headers, (b"DataServiceId", location), etag])
    _, annotations, values = write_fragments(change.entity.properties)
    content = (annotations + values if form.annotations else values).encode()
    stored = StoredEntity(encode_entity_key(change.key), str(timestamp).encode(), content)
    body = formats.write_entity(call.context(form, table)._replace(select=None, raw_select=None), stored)
    return Answer(201, [CONTENT_TYPES[form], *headers, etag], body)
