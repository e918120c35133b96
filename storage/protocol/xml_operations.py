"""XML operations selected by ``comp`` and ``restype``: table policies, service properties and statistics."""

from collections.abc import Awaitable
from email.utils import formatdate
from time import time
from typing import Final

from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.errors import (
    InvalidQueryParameterValue,
    MissingRequiredQueryParameter,
    UnsupportedHttpVerb,
)
from storage.domain.requests.routes import TargetKind
from storage.domain.service_properties.xml import read_properties, write_properties
from storage.domain.values.names import fold_table_name
from storage.domain.values.xml import START
from storage.protocol.call import Answer, Call

_XML: Final = (b"Content-Type", b"application/xml")


def handle_xml_operation(call: Call) -> Awaitable[Answer]:
    """Dispatch an XML operation by ``comp`` and ``restype``, which are case-sensitive like its permission look-up."""
    comp, restype = call.request.options.get("comp"), call.request.options.get("restype")
    if restype not in (None, "service"):
        raise _invalid_parameter("restype", restype)
    match call.request.target.kind, restype, comp:
        case TargetKind.ENTITIES, None, "acl":
            return handle_policies(call)
        case TargetKind.SERVICE, "service", "properties":
            return handle_properties(call)
        case TargetKind.SERVICE, "service", "stats":
            return get_stats(call)
        case TargetKind.SERVICE, None, "properties" | "stats":
            raise MissingRequiredQueryParameter(QueryParameterName="restype")
        case TargetKind.SERVICE, "service", None:
            raise MissingRequiredQueryParameter(QueryParameterName="comp")
    # service properties and statistics belong to the service, not to a table
    raise _invalid_parameter("comp", comp or "")


async def handle_policies(call: Call) -> Answer:
    """Handle Get and Set Table ACL, also for versions that predate policies."""
    table = fold_table_name(call.request.target.table, call.dialect.kind)
    match call.request.method:
        case "GET":
            identifiers = await call.service.policies(call.account, table)
            return Answer(200, [_XML], write_identifiers(identifiers))
        case "PUT":
            identifiers = read_identifiers(call.request.body)
            await call.service.replace_policies(call.account, table, identifiers, by=call.actor())
            return Answer(204, [])
    raise UnsupportedHttpVerb(Allow="GET, PUT")


async def handle_properties(call: Call) -> Answer:
    match call.request.method:
        case "GET":
            return Answer(200, [_XML], write_properties(call.account.properties, call.request.version))
        case "PUT":
            update = read_properties(call.request.body, call.request.version)
            await call.service.replace_properties(call.account, update.apply, by=call.actor())
            return Answer(202, [])
    raise UnsupportedHttpVerb(Allow="GET, PUT")


async def get_stats(call: Call) -> Answer:
    """Return the service statistics, by the least current of the secondary databases."""
    if call.request.method != "GET":
        raise UnsupportedHttpVerb(Allow="GET")
    if not call.address.secondary:
        raise _invalid_parameter("comp", "stats")
    synchronizations = call.service.synchronizations()
    if not synchronizations:
        return Answer(200, [_XML], write_stats(time()))
    in_use = [it.at for it in synchronizations if it.is_in_use]
    if in_use:
        return Answer(200, [_XML], write_stats(min(it for it in in_use if it is not None)))
    known = [it.at for it in synchronizations if it.at is not None]
    return Answer(200, [_XML], write_stats(max(known, default=None), status="unavailable"))


def write_stats(synchronized: float | None, *, status: str = "live") -> bytes:
    """Serialize the service statistics to XML."""
    written = "" if synchronized is None else formatdate(synchronized, usegmt=True)
    return START + (
        f"<StorageServiceStats><GeoReplication><Status>{status}</Status>"
        f"<LastSyncTime>{written}</LastSyncTime></GeoReplication></StorageServiceStats>"
    ).encode("ascii")


def _invalid_parameter(name: str, value: str) -> InvalidQueryParameterValue:
    return InvalidQueryParameterValue(QueryParameterName=name, QueryParameterValue=value)
