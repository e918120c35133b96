"""Query Tables, Get Table, Create Table, Delete Table."""

from storage.domain.errors import InvalidInput, MethodNotAllowed
from storage.protocol import formats
from storage.protocol.call import CONTENT_TYPES, Answer, Call
from storage.protocol.negotiation import Preference, read_preference
from storage.protocol.payload import read_table_name
from storage.protocol.query_options import read_table_query, write_token


async def collection(call: Call) -> Answer:
    match call.method:
        case "GET":
            return await _query(call)
        case "POST":
            return await _create(call)
    raise MethodNotAllowed(Allow="GET, POST")


async def table(call: Call) -> Answer:
    match call.method:
        case "GET":
            return await _get(call)
        case "DELETE":
            _check_conditions(call)
            await call.service.delete_table(call.account, call.target.table, by=call.actor())
            return Answer(204, [])
    raise MethodNotAllowed(Allow="GET, DELETE")


def _check_conditions(call: Call) -> None:
    """A table has no ETag; an If-Match that any will satisfy is let pass."""
    if call.headers.get(b"if-match", b"*") != b"*" or b"if-none-match" in call.headers:
        raise InvalidInput(
            "If-Match or If-None-Match headers cannot be specified "
            "if the target type does not have etag properties defined."
        )


async def _query(call: Call) -> Answer:
    form = call.format()
    names, following = await call.service.query_tables(call.account, read_table_query(call.options))
    headers = [CONTENT_TYPES[form]]
    if following is not None:
        headers.append((b"x-ms-continuation-NextTableName", write_token(following).encode()))
    return Answer(200, headers, formats.write_tables(call.context(form, "Tables"), names))


async def _get(call: Call) -> Answer:
    form = call.format()
    name = await call.service.get_table(call.account, call.target.table)
    return Answer(200, [CONTENT_TYPES[form]], formats.write_table(call.context(form, name), name))


async def _create(call: Call) -> Answer:
    form = call.format()
    name = read_table_name(formats.read_object(call.headers.get(b"content-type"), call.body, call.version))
    await call.service.create_table(call.account, name, by=call.actor())
    location = f"{call.address.base}/Tables('{name}')".encode()
    preference = read_preference(call.headers.get(b"prefer"), call.version)
    headers = [(b"Location", location)]
    if preference.applied is not None:
        headers.append((b"Preference-Applied", preference.applied))
    if preference is Preference.NO_CONTENT:
        return Answer(204, [*headers, (b"DataServiceId", location)])
    return Answer(201, [*headers, CONTENT_TYPES[form]], formats.write_table(call.context(form, name), name))
