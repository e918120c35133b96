"""The Table service as an ASGI application: read, authorize, operate, write."""

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter, time_ns
from typing import Any, Final
from uuid import uuid4

from storage.domain.access.grants import Operation
from storage.domain.errors import (
    InsufficientAccountPermissions,
    InternalError,
    ServerBusy,
    StorageError,
    UnsupportedHttpVerb,
)
from storage.domain.requests.observed import ObservedRequest
from storage.domain.requests.options import read_options
from storage.domain.requests.request_log import should_log
from storage.domain.requests.routes import (
    Target,
    TargetKind,
    check_target,
    resolve_address,
    resolve_operation,
    resolve_target,
)
from storage.domain.service.service_properties import NO_LOGGING, CorsRule, Logging
from storage.operations.catalog import KnownAccount
from storage.operations.service import Service
from storage.protocol import batch, entities, tables
from storage.protocol.accept import Format
from storage.protocol.authorization import Authorized, Sent, authentication, authorize
from storage.protocol.body import Body, ClientGone, Receive
from storage.protocol.call import CONTENT_TYPES, Answer, Call, Headers, Rules
from storage.protocol.cors import preflight, response_headers
from storage.protocol.errors import HEADERS, write_error
from storage.protocol.http import SERVER
from storage.protocol.negotiation import (
    FIRST_WITHOUT_ATOM,
    Source,
    effective_method,
    error_format,
    heeded_options,
    read_version,
)
from storage.protocol.query_options import check_options
from storage.protocol.request_log import entry
from storage.protocol.service import service_resource

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_CLIENT_REQUEST_ID_LIMIT: Final = 1024
_SLOW: Final = 1.0  # seconds after which a request has to prove again that it may be done
_NOWHERE: Final = ("", 0)
_ADDRESS_LIMIT: Final = 64  # characters
_AGENT_LIMIT: Final = 256  # bytes of what is remembered of it

_SERVER: Final = (b"Server", SERVER)
_COMMON: Final = [_SERVER, (b"Cache-Control", b"no-cache"), (b"X-Content-Type-Options", b"nosniff")]


@dataclass(slots=True)
class _Request:
    """What is known of a request so far: an error is answered in the form that fits the stage it came from."""

    headers: Mapping[bytes, bytes]
    id: str
    observed: ObservedRequest
    version: str = ""
    bad_version: StorageError | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    source: Source = Source.ODATA
    cors: Sequence[CorsRule] = ()
    logging: Logging = NO_LOGGING


class TableService:
    """The application of one process."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._service = Service(rules.conninfo, rules.bearer)
        self._request_prefix = str(uuid4())[:24]
        self._request_numbers = count(1)

    async def startup(self) -> None:
        await self._service.open()

    async def shutdown(self) -> None:
        await self._service.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # a GUID: the process at random, the request in order
        request_id = f"{self._request_prefix}{next(self._request_numbers):012x}"
        observed = ObservedRequest(perf_counter(), request_id=request_id)
        request = _Request(_joined(scope["headers"]), request_id, observed)
        body = Body(request.headers, receive)
        try:
            answer = await self._answer(scope, request, body)
        except ClientGone:
            self._service.observer.record(observed)
            return
        except StorageError as error:
            answer = _refused(request, error)
        except Exception:
            logger.exception("Request %s failed", request.id)
            answer = _refused(request, InternalError())
        observed.answered = perf_counter()
        try:
            whole = await body.drain()
        except ClientGone:
            self._service.observer.record(observed)
            return
        headers = _headers(request, answer, scope["method"])
        if not whole:
            headers.append((b"Connection", b"close"))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
        else:
            await send({"type": "http.response.body", "body": answer.body})
        observed.status = answer.status
        observed.ingress = body.received
        observed.egress = len(answer.body)
        observed.sent = perf_counter()
        self._service.observer.record(observed)
        if request.logging is not NO_LOGGING and should_log(request.logging, observed.operation):
            line = entry(scope, request.headers, observed, request.id, request.version, headers)
            self._service.observer.log(observed, line)

    async def _answer(self, scope: Scope, request: _Request, body: Body) -> Answer:
        sent = self._read_head(scope, request)
        known = await self._service.account(sent.address.account)
        _observe(request, sent, known, scope)
        if sent.method == "OPTIONS":
            request.observed.operation = Operation.PREFLIGHT
            return Answer(200, preflight(request.cors, sent.headers))
        authorized = await self._authorize(request, sent, known)
        if request.bad_version is not None:
            raise request.bad_version
        method, aim = _aim(scope, request, sent, authorized)
        content = await body.read(sent.method)
        if perf_counter() - request.observed.started > _SLOW:
            # meanwhile a key, a policy or a token may have lost what it could when the request began
            known = await self._service.account(sent.address.account)
            authorized = await self._authorize(request, sent, known)
            check_target(authorized.grant, request.observed.operation, aim)
        call = Call(
            self._service,
            self._rules,
            authorized.account,
            authorized.grant,
            sent.address,
            method,
            aim,
            request.options,
            sent.headers,
            request.version,
            content,
            request.observed,
        )
        return await _operate(call, request)

    def _read_head(self, scope: Scope, request: _Request) -> Sent:
        headers, path, query = request.headers, scope["raw_path"], scope["query_string"]
        _read_version(request)
        where = resolve_address(path, headers.get(b"host"), scope["scheme"], self._rules.host_suffixes)
        request.options = read_options(query)
        if "sv" in request.options or b"x-ms-version" not in headers:
            _read_version(request)
        request.options = heeded_options(request.options, request.version)
        client = scope.get("client") or _NOWHERE
        return Sent(where, scope["method"], path, query, request.options, headers, scope["scheme"], client[0])

    async def _authorize(self, request: _Request, sent: Sent, known: KnownAccount | None) -> Authorized:
        request.source = Source.FRONT_END
        request.observed.authentication = authentication(sent)
        authorized = await authorize(self._service, known, sent)
        request.observed.credential = authorized.credential
        request.source = Source.XML if _is_xml_operation(request.options) else Source.ODATA
        return authorized


def _read_version(request: _Request) -> None:
    """What is wrong with it is said only to who may know."""
    try:
        request.version, request.bad_version = read_version(request.headers, request.options), None
    except StorageError as error:
        request.version, request.bad_version = "", error


def _observe(request: _Request, sent: Sent, account: KnownAccount | None, scope: Scope) -> None:
    observed = request.observed
    if account is not None:
        observed.account_id, observed.account = account.id, account.name
        request.cors, request.logging = account.properties.cors, account.properties.logging
    observed.secondary = sent.address.secondary
    address, observed.port = scope.get("client") or _NOWHERE
    observed.address = address[:_ADDRESS_LIMIT]  # a proxy may have passed on anything
    observed.agent = sent.headers.get(b"user-agent", b"")[:_AGENT_LIMIT]


def _aim(scope: Scope, request: _Request, sent: Sent, authorized: Authorized) -> tuple[str, Target]:
    """The method that is meant, and the resource; that the caller may do this to it."""
    method = sent.method
    if b"x-http-method" in sent.headers:
        tunnelled = [value for name, value in scope["headers"] if name == b"x-http-method"]
        method = effective_method(method, tunnelled)
    if sent.address.secondary and sent.method not in ("GET", "HEAD"):
        raise InsufficientAccountPermissions
    aim = resolve_target(sent.address.rest, method, authorized.account.name)
    meant = resolve_operation(aim, method, request.options, conditional=b"if-match" in sent.headers)
    request.observed.table, request.observed.operation = aim.table, meant
    check_target(authorized.grant, meant, aim)
    check_options(request.options)
    return method, aim


async def _operate(call: Call, request: _Request) -> Answer:
    if request.source is Source.XML:
        return await service_resource(call)
    match call.target.kind:
        case TargetKind.ENTITY:
            return await entities.entity(call)
        case TargetKind.UNNAMED:
            return await entities.unnamed(call)
        case TargetKind.ENTITIES:
            return await entities.collection(call)
        case TargetKind.BATCH:
            return await batch.batch(call, request.id, _now())
        case TargetKind.TABLES:
            return await tables.collection(call)
        case TargetKind.TABLE:
            return await tables.table(call)
        case TargetKind.SERVICE:
            raise UnsupportedHttpVerb


def _joined(fields: Headers) -> dict[bytes, bytes]:
    """Headers by name; the values of one that comes twice joined, as HTTP has it."""
    headers = dict(fields)
    if len(headers) == len(fields):
        return headers
    values: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return {name: b", ".join(several) for name, several in values.items()}


def _is_xml_operation(options: Mapping[str, str]) -> bool:
    return "comp" in options or "restype" in options


def _now() -> int:
    """Ticks of 100 ns since 1970."""
    return time_ns() // 100


def _refused(request: _Request, error: StorageError) -> Answer:
    request.observed.error = error.code
    form = error_format(request.source, request.options.get("$format"), request.headers.get(b"accept"))
    answer = write_error(error, form, request.id, _now())
    headers: Headers = [(b"Content-Type", answer.content_type), (b"x-ms-error-code", error.code.encode())]
    headers += [(name.encode(), error.details[name].encode()) for name in HEADERS if name in error.details]
    if isinstance(error, ServerBusy):
        headers.append((b"Retry-After", b"1"))
    return Answer(answer.status, headers, answer.body)


def _headers(request: _Request, answer: Answer, method: str) -> Headers:
    length = b"%d" % len(answer.body)
    headers = [
        *(_COMMON if request.source is not Source.XML else (_SERVER,)),
        (b"x-ms-request-id", request.id.encode()),
        *answer.headers,
        (b"Content-Length", length),
    ]
    if request.version:
        headers.append((b"x-ms-version", request.version.encode()))
    if request.version < FIRST_WITHOUT_ATOM and CONTENT_TYPES[Format.ATOM] in answer.headers:
        headers.append((b"DataServiceVersion", b"1.0;"))
    client_request_id = request.headers.get(b"x-ms-client-request-id")
    if client_request_id is not None and len(client_request_id) <= _CLIENT_REQUEST_ID_LIMIT:
        headers.append((b"x-ms-client-request-id", client_request_id))
    if request.cors and method != "OPTIONS":
        headers += response_headers(request.cors, method, request.headers.get(b"origin"), headers)
    return headers
