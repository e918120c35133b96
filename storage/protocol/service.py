"""The operations that ``comp`` and ``restype`` ask for: properties and statistics of the service, policies of a table.

https://learn.microsoft.com/rest/api/storageservices/get-table-service-properties
https://learn.microsoft.com/rest/api/storageservices/get-table-service-stats
"""

from email.utils import formatdate
from time import time
from typing import Final

from storage.domain.errors import (
    InvalidQueryParameterValue,
    MissingRequiredQueryParameter,
    UnsupportedHttpVerb,
)
from storage.domain.requests.routes import TargetKind
from storage.domain.service.service_properties_xml import read_properties, write_properties
from storage.domain.values.xml import START
from storage.protocol.call import Answer, Call
from storage.protocol.policies import table_acl

_XML: Final = (b"Content-Type", b"application/xml")


async def service_resource(call: Call) -> Answer:
    """Letter case counts in both parameters, as it does where the permission for the operation is looked up."""
    comp, restype = call.options.get("comp"), call.options.get("restype")
    if restype not in (None, "service"):
        raise _refused(restype=restype)
    match call.target.kind, restype, comp:
        case TargetKind.ENTITIES, None, "acl":
            return await table_acl(call)
        case TargetKind.SERVICE, "service", "properties":
            return await properties(call)
        case TargetKind.SERVICE, "service", "stats":
            return await stats(call)
        case TargetKind.SERVICE, None, "properties" | "stats":
            raise MissingRequiredQueryParameter(QueryParameterName="restype")
        case TargetKind.SERVICE, "service", None:
            raise MissingRequiredQueryParameter(QueryParameterName="comp")
    # service properties and statistics belong to the service, not to a table
    raise _refused(comp=comp or "")


async def properties(call: Call) -> Answer:
    match call.method:
        case "GET":
            return Answer(200, [_XML], write_properties(call.account.properties, call.version))
        case "PUT":
            update = read_properties(call.body, call.version)
            await call.service.replace_properties(call.account, update.apply, by=call.actor())
            return Answer(202, [])
    raise UnsupportedHttpVerb(Allow="GET, PUT")


async def stats(call: Call) -> Answer:
    """Of the replica: it is this server itself, so never behind."""
    if call.method != "GET":
        raise UnsupportedHttpVerb(Allow="GET")
    if not call.address.secondary:
        raise _refused(comp="stats")
    return Answer(200, [_XML], write_stats(time()))


def write_stats(synchronized: float) -> bytes:
    """``synchronized`` in seconds since 1970."""
    moment = formatdate(synchronized, usegmt=True)
    return START + (
        "<StorageServiceStats><GeoReplication><Status>live</Status>"
        f"<LastSyncTime>{moment}</LastSyncTime></GeoReplication></StorageServiceStats>"
    ).encode("ascii")


def _refused(**parameter: str) -> InvalidQueryParameterValue:
    ((name, value),) = parameter.items()
    return InvalidQueryParameterValue(QueryParameterName=name, QueryParameterValue=value)
