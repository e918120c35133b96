"""Table operations of the protocol: query, get, create and delete."""

from collections.abc import Awaitable

from storage.domain.errors import InvalidInput, MethodNotAllowed
from storage.protocol import cosmos, formats, strictness
from storage.protocol.call import Answer, Call
from storage.protocol.json_format import read_table_name, table_link
from storage.protocol.negotiation import Preference, read_preference
from storage.protocol.query_options import read_table_query, write_token


def handle_table_set(call: Call) -> Awaitable[Answer]:
    match call.request.method:
        case "GET":
            strictness.check_accept(call)
            return _query(call)
        case "POST":
            return _create(call)
    raise MethodNotAllowed(Allow="GET, POST")


def handle_table(call: Call) -> Awaitable[Answer]:
    match call.request.method:
        case "GET":
            strictness.check_accept(call)
            return _get(call)
        case "DELETE":
            return _delete(call)
    raise MethodNotAllowed(Allow="GET, DELETE")


async def _query(call: Call) -> Answer:
    form = call.request.response_format()
    table_query = read_table_query(call.request.options, call.dialect)
    strictness.check_query(call, table_query.filter)
    names, following = await call.service.query_tables(call.account, table_query)
    headers = [call.content_type(form)]
    if following is not None:
        headers.append((b"x-ms-continuation-NextTableName", write_token(following).encode()))
    return Answer(200, headers, formats.write_tables(call.context(form, "Tables"), names))


async def _get(call: Call) -> Answer:
    form = call.request.response_format()
    name = await call.service.get_table(call.account, call.request.target.table)
    return Answer(200, [call.content_type(form)], formats.write_table(call.context(form, name), name))


async def _create(call: Call) -> Answer:
    request = call.request
    form = request.response_format()
    strictness.check_content_type(call)
    name = read_table_name(
        formats.read_object(request.headers.get(b"content-type"), request.body, request.version)
    )
    await strictness.check_deletion(call, name)
    created = await call.service.create_table(call.account, name, by=call.actor())
    location = f"{call.address.base}/{table_link(name)}".encode()
    preference = read_preference(request.headers.get(b"prefer"), request.version)
    if call.dialect.is_cosmos:
        headers = [call.content_type(form), call.etag(created), (b"Location", location)]
        if preference is Preference.NO_CONTENT:
            # [inferred] Microsoft.Azure.Cosmos.Table asks for it and understands no other answer
            return Answer(204, [*headers, *preference.headers])
        return Answer(201, headers, formats.write_table(call.context(form, name), name), cosmos.OK)
    headers = [(b"Location", location), *preference.headers]
    if preference is Preference.NO_CONTENT:
        return Answer(204, [*headers, *call.data_service_id(location)])
    return Answer(
        201, [*headers, call.content_type(form)], formats.write_table(call.context(form, name), name)
    )


async def _delete(call: Call) -> Answer:
    headers = call.request.headers
    # a table has no ETag: only the If-Match that every ETag satisfies is accepted
    if headers.get(b"if-match", b"*") != b"*" or b"if-none-match" in headers:
        raise InvalidInput(
            "If-Match or If-None-Match headers cannot be specified "
            "if the target type does not have etag properties defined."
        )
    await call.service.delete_table(call.account, call.request.target.table, by=call.actor())
    return Answer(204, [])
