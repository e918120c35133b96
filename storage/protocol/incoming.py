"""Head of an incoming request, and its resolution to an operation."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from storage.domain.access.grants import Operation
from storage.domain.errors import InsufficientAccountPermissions, StorageError
from storage.domain.requests.cleaning import clean_agent
from storage.domain.requests.options import read_options
from storage.domain.requests.routes import (
    Address,
    Target,
    TargetKind,
    resolve_address,
    resolve_operation,
    resolve_target,
)
from storage.domain.values.dialects import Dialect
from storage.protocol.errors import ErrorOrigin
from storage.protocol.http_request import RequestHead
from storage.protocol.negotiation import NEWEST_VERSION, effective_method, read_version, supported_options

_ADDRESS_LIMIT: Final = 64  # characters
_AGENT_LIMIT: Final = 256  # bytes that are remembered


class IncomingRequest(NamedTuple):
    """Head of a request before authorization."""

    address: Address
    method: str
    path: bytes
    query: bytes
    options: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    scheme: str
    client: str
    version: str
    version_error: StorageError | None

    @property
    def operation_origin(self) -> ErrorOrigin:
        """Return the origin of an error that the operation raises."""
        is_xml = "comp" in self.options or "restype" in self.options
        return ErrorOrigin.XML_OPERATION if is_xml else ErrorOrigin.ODATA


class Caller(NamedTuple):
    """Client of a request, as shown in logs; ``agent`` contains no credentials."""

    address: str
    agent: bytes


class ResolvedRequest(NamedTuple):
    """Resolved request: ``method`` is the effective one, ``operation`` is None if the resource does not support it."""

    method: str
    target: Target
    operation: Operation | None


def read_incoming_request(head: RequestHead, host_suffixes: Sequence[str]) -> IncomingRequest:
    headers = head.headers
    host, authorization = headers.get(b"host"), headers.get(b"authorization")
    where = resolve_address(head.path, host, head.scheme, host_suffixes, authorization, head.query)
    options = read_options(head.query)
    version, version_error = negotiate_version(headers, options)
    return IncomingRequest(
        where,
        head.method,
        head.path,
        head.query,
        supported_options(options, version),
        headers,
        head.scheme,
        head.client,
        version,
        version_error,
    )


def read_caller(request: IncomingRequest) -> Caller:
    agent = clean_agent(request.headers.get(b"user-agent", b"")[:_AGENT_LIMIT])
    return Caller(request.client[:_ADDRESS_LIMIT], agent)  # a proxy may have passed on anything


def negotiate_version(
    headers: Mapping[bytes, bytes], options: Mapping[str, str]
) -> tuple[str, StorageError | None]:
    """Return the protocol version of a request, or an empty string and the error about the version."""
    try:
        return read_version(headers, options), None
    except StorageError as error:
        return "", error


def as_cosmos(request: IncomingRequest) -> IncomingRequest:
    """Return the request as a Cosmos account reads it, ignoring versions and ``$format``."""
    options = {name: value for name, value in read_options(request.query).items() if name != "$format"}
    return request._replace(options=options, version=NEWEST_VERSION, version_error=None)


def resolve_request(
    request: IncomingRequest, fields: Sequence[tuple[bytes, bytes]], account: str, dialect: Dialect
) -> ResolvedRequest:
    """Resolve an authorized request to operation and resource; ``fields`` are its headers as sent."""
    if request.version_error is not None:
        raise request.version_error
    method = request.method
    if b"x-http-method" in request.headers:
        method = effective_method(method, [value for name, value in fields if name == b"x-http-method"])
    # in Cosmos every region may be one that is written to
    is_read_only = request.address.secondary and not dialect.is_cosmos
    resource = resolve_target(request.address.rest, method, account, dialect.kind)
    # a batch may be a query, which is known when it is read
    if is_read_only and request.method not in ("GET", "HEAD") and resource.kind is not TargetKind.BATCH:
        raise InsufficientAccountPermissions
    conditional = b"if-match" in request.headers
    return ResolvedRequest(
        method, resource, resolve_operation(resource, method, request.options, conditional=conditional)
    )
