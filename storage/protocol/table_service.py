"""Front end of the Table service, which passes a request through named stages."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial
from itertools import count
from time import perf_counter
from typing import Final, NamedTuple
from uuid import uuid4

from storage.core.tracer import Tracer
from storage.domain.access.grants import Operation
from storage.domain.errors import InternalError, NotImplemented, ServerBusy, StorageError, UnsupportedHttpVerb
from storage.domain.requests.observed import ACTORS, REFUSALS, ObservedRequest
from storage.domain.requests.recorded import SentRequest
from storage.domain.requests.routes import TargetKind, check_target
from storage.domain.service_properties.properties import CorsRule
from storage.domain.values.dialects import Dialect
from storage.protocol import as_of, batch, consistency, cosmos, entities, rehearsal, tables, xml_operations
from storage.protocol.accept import Format
from storage.protocol.authorization import Authorized, authorize
from storage.protocol.call import Answer, Call, OperationRequest, ServerSettings
from storage.protocol.cors import preflight, response_headers
from storage.protocol.errors import HEADERS, ErrorOrigin, error_reason, write_error
from storage.protocol.http_connection import SERVER
from storage.protocol.http_exchange import Write
from storage.protocol.http_request import ClientDisconnected, Headers, RequestBody, RequestHead
from storage.protocol.incoming import (
    IncomingRequest,
    ResolvedRequest,
    as_cosmos,
    negotiate_version,
    read_caller,
    read_incoming_request,
    resolve_request,
)
from storage.protocol.negotiation import FIRST_WITHOUT_ATOM, read_preference
from storage.protocol.progress import Progress, forget_frames, observe
from storage.protocol.query_options import check_options
from storage.runtime.catalog import KnownAccount
from storage.runtime.live_feed import LiveFeed
from storage.runtime.service import Service
from storage.runtime.stream_access import AccessChanges

logger = logging.getLogger(__name__)

_CLIENT_REQUEST_ID_LIMIT: Final = 1024
_SLOW: Final = 1.0  # seconds after which a request is authorized again before anything is done

_AS_OF: Final = (TargetKind.ENTITY, TargetKind.ENTITIES)  # targets that can be read as of a moment
_SERVER: Final = (b"Server", SERVER)
_NO_SNIFFING: Final = (b"X-Content-Type-Options", b"nosniff")
_COMMON: Final = [_SERVER, (b"Cache-Control", b"no-cache"), _NO_SNIFFING]
_OK: Final = 200
_ERROR: Final = 400  # the lowest status of an error


class Response(NamedTuple):
    """Complete response with all headers."""

    status: int
    headers: Headers
    body: bytes
    reason: bytes | None


class TableService:
    """The Table service of one process."""

    def __init__(self, settings: ServerSettings, tracer: Tracer | None = None) -> None:
        self._settings = settings
        self._tracer = tracer
        self._service = Service(settings.conninfo, settings.bearer, tracer)
        self._request_prefix = str(uuid4())[:24]
        self._request_numbers = count(1)

    @property
    def live_feed(self) -> LiveFeed:
        return self._service.live_feed

    @property
    def access_changes(self) -> AccessChanges:
        return self._service.access_changes

    async def startup(self) -> None:
        if self._tracer is not None:
            self._tracer.open()
        await self._service.open()

    async def shutdown(self) -> None:
        await self._service.close()
        if self._tracer is not None:
            await asyncio.to_thread(self._tracer.close)

    async def serve(self, head: RequestHead, body: RequestBody, write: Write) -> None:
        """Serve a request; ``write`` is called once, unless the client has disconnected."""
        # a GUID: the process at random, the request in order
        request_id = f"{self._request_prefix}{next(self._request_numbers):012x}"
        observed = ObservedRequest(perf_counter(), request_id=request_id)
        progress = Progress(head, observed)
        try:
            response = await self._respond(progress, body)
            observed.answered = perf_counter()
            reusable = body.complete or await body.drain()
            deliver = None
            rehearser = progress.account.rehearser if progress.account is not None else None
            if rehearser is not None and (progress.rehearsed is not None or rehearser.is_wanted(None)):
                deliver = await rehearsal.finish(progress, self._service, response, is_lost=body.is_lost)
        except ClientDisconnected:
            pass
        else:
            sent = response.body if head.method != "HEAD" else b""
            write(response.status, response.headers, sent, reusable, response.reason, deliver)
            observed.ingress = body.received
            if observed.rehearsed is None or not observed.rehearsed.is_withheld:
                observed.status = response.status
                observed.egress = len(response.body)
            observed.sent = perf_counter()
        operation = observe(progress)
        if progress.error is not None:
            _log_error(progress, operation)
        refusal = observed.refusal
        self._record(head, observed)
        if self._tracer is not None:
            self._tracer.finish_request(observed)
        for error in (refusal, progress.failure):
            if error is not None:
                forget_frames(error)

    def _record(self, head: RequestHead, observed: ObservedRequest) -> None:
        if observed.possible_table and self._service.knows_table(
            observed.account_id, observed.possible_table
        ):
            observed.table = observed.possible_table
        observer = self._service.observer
        rehearsed = observed.rehearsed
        # metrics, notices and alarms leave rehearsed failures out
        is_failure = rehearsed is not None and rehearsed.is_failure
        if is_failure or observer.record(observed) or rehearsed is not None:
            sent = SentRequest(head.method, head.path, head.query, head.headers, head.scheme, head.client)
            observer.keep(observed, sent)

    async def _respond(self, progress: Progress, body: RequestBody) -> Response:
        """Process a request through its stages, converting errors to responses."""
        try:
            answer = await self._answer(progress, body)
        except StorageError as error:
            answer = _refuse(error, progress)
        except ClientDisconnected:
            raise
        except Exception as failure:
            progress.failure = failure
            answer = _refuse(InternalError(), progress)
        return _complete(answer, progress)

    async def _answer(self, progress: Progress, body: RequestBody) -> Answer:
        """Run the stages of a request."""
        request = progress.request = read_incoming_request(progress.head, self._settings.host_suffixes)
        progress.origin = ErrorOrigin.ODATA
        account = progress.account = await self._find_account(request)
        if account is not None:
            progress.dialect = Dialect(account.kind, self._settings.key_length_limit)
        if progress.dialect.is_cosmos:
            request = progress.request = as_cosmos(request)
        progress.caller = read_caller(request)
        if request.method == "OPTIONS":
            progress.origin = request.operation_origin
            if progress.dialect.is_cosmos:
                raise NotImplemented
            return Answer(200, preflight(_cors_rules(account), request.headers))
        authorized = await self._authorize(progress, account, request)
        resolved = progress.resolved = resolve_request(
            request, progress.head.fields, authorized.account.name, progress.dialect
        )
        check_target(authorized.grant, resolved.operation, resolved.target)
        check_options(request.options)
        terms = progress.terms = consistency.read_terms(request, authorized.account)
        content = await body.read(progress.head)
        if perf_counter() - progress.observed.started > _SLOW:
            authorized = await self._authorize_again(progress, request, resolved)
        call = Call(
            OperationRequest(
                method=resolved.method,
                target=resolved.target,
                options=request.options,
                headers=request.headers,
                version=request.version,
                body=content,
            ),
            account=authorized.account,
            dialect=progress.dialect,
            grant=authorized.grant,
            credential=authorized.credential,
            caller=progress.caller,
            address=request.address,
            service=self._service,
            observed=progress.observed,
            terms=terms,
        )
        rehearser = authorized.account.rehearser
        if (
            rehearser is not None
            and rehearser.is_wanted(request.headers.get(rehearsal.ASKED))
            and rehearsal.may_count(authorized.account)
        ):
            again = partial(self._authorize_again, progress, request, resolved)
            return await rehearsal.perform(progress, rehearser, call, perform, again)
        return await perform(call)

    def _find_account(self, request: IncomingRequest) -> Awaitable[KnownAccount | None]:
        address = request.address
        return self._service.account(address.account, secondary=address.secondary)

    async def _authorize(
        self, progress: Progress, account: KnownAccount | None, request: IncomingRequest, skew: float = 0.0
    ) -> Authorized:
        progress.origin = ErrorOrigin.AUTHORIZATION
        progress.authorized = authorized = await authorize(self._service, account, request, skew=skew)
        progress.origin = request.operation_origin
        return authorized

    async def _authorize_again(
        self, progress: Progress, request: IncomingRequest, resolved: ResolvedRequest, skew: float = 0.0
    ) -> Authorized:
        """Authorize a request that has taken long: a key, a policy or a token may have been revoked meanwhile."""
        authorized = await self._authorize(progress, await self._find_account(request), request, skew)
        check_target(authorized.grant, resolved.operation, resolved.target)
        return authorized


def perform(call: Call) -> Awaitable[Answer]:
    """Execute the operation of an authorized request."""
    options = call.request.options
    is_xml_operation = "comp" in options or "restype" in options
    if is_xml_operation or call.request.method != "GET" or call.request.target.kind not in _AS_OF:
        as_of.refuse(call.request)
    if is_xml_operation:
        if call.dialect.is_cosmos:
            raise NotImplemented
        return xml_operations.handle_xml_operation(call)
    match call.request.target.kind:
        case TargetKind.ENTITY:
            return entities.handle_entity(call)
        case TargetKind.UNNAMED:
            return entities.refuse_entity_without_keys(call)
        case TargetKind.ENTITIES:
            return entities.handle_entity_set(call)
        case TargetKind.BATCH:
            return batch.handle_batch(call)
        case TargetKind.TABLES:
            return tables.handle_table_set(call)
        case TargetKind.TABLE:
            return tables.handle_table(call)
        case TargetKind.SERVICE:
            raise UnsupportedHttpVerb


def _xml_headers(status: int) -> Headers:
    """Return the headers of an XML response, without Cache-Control like Azure."""
    # an error repeats what the client sent
    return [_SERVER, _NO_SNIFFING] if status >= _ERROR else [_SERVER]


def _log_error(progress: Progress, operation: Operation | None) -> None:
    """Log a failure or a denied request, without keys of entities."""
    observed, failure = progress.observed, progress.failure
    if failure is not None:
        logger.error(
            "Request %s failed",
            observed.request_id,
            exc_info=failure,
            extra=_log_fields(observed, operation),
        )
    elif progress.status in REFUSALS and logger.isEnabledFor(logging.INFO):
        logger.info(
            "%s of %s refused with %d %s to %s: request %s",
            operation or "A request",
            observed.account or "an unknown account",
            progress.status,
            observed.error,
            observed.address,
            observed.request_id,
            extra=_log_fields(observed, operation),
        )


def _log_fields(observed: ObservedRequest, operation: Operation | None) -> dict[str, str]:
    """Return the fields of `storage.server.logs.REQUEST_FIELDS`; unknown ones are empty."""
    credential = observed.credential
    return {
        "request_id": observed.request_id,
        "user": f"{ACTORS[credential.authentication]}:{credential.name}" if credential is not None else "",
        "account": observed.account,
        "operation": operation or "",
    }


def _cors_rules(account: KnownAccount | None) -> Sequence[CorsRule]:
    return account.properties.cors if account is not None else ()


def _refuse(error: StorageError, progress: Progress) -> Answer:
    progress.error = error
    answer = _write_refusal(error, progress)
    progress.status = answer.status
    return answer


def _write_refusal(error: StorageError, progress: Progress) -> Answer:
    request, origin, request_id = progress.request, progress.origin, progress.observed.request_id
    fields = progress.head.headers
    if request is not None and progress.dialect.is_cosmos:
        return Answer(*cosmos.refuse(error, request_id, request.method, fields))
    format_option = request.options.get("$format") if request is not None else None
    written = write_error(
        error, origin, request_id, format_option=format_option, accept=fields.get(b"accept")
    )
    headers: Headers = [
        (b"Content-Type", written.content_type),
        (b"x-ms-error-code", error.code.encode()),
        *((name.encode(), error.details[name].encode()) for name in HEADERS if name in error.details),
    ]
    if request is not None and request.method == "POST" and origin is ErrorOrigin.ODATA:
        headers += read_preference(fields.get(b"prefer"), request.version).headers
    if isinstance(error, ServerBusy):
        headers.append((b"Retry-After", b"%d" % error.retry_after))
    is_of_version = request is not None and error is request.version_error
    reason = error_reason(error, ErrorOrigin.FRONT_END if is_of_version else origin)
    return Answer(written.status, headers, written.body, reason)


def _complete(answer: Answer, progress: Progress) -> Response:
    """Add the common headers to a response."""
    fields, method = progress.head.headers, progress.head.method
    request, terms, request_id = progress.request, progress.terms, progress.observed.request_id
    if progress.dialect.is_cosmos:
        headers = [_SERVER, (b"x-ms-request-id", request_id.encode()), *answer.headers]
        if not answer.body and all(name != b"Content-Type" for name, _ in headers):
            headers.append(cosmos.NO_CONTENT)
        headers.append((b"Content-Length", b"%d" % len(answer.body)))
        headers += consistency.write_session(terms)
        reason = cosmos.OK if answer.status == _OK else answer.reason
        return Response(answer.status, headers, answer.body, reason)
    # the options may be what could not be read
    version = request.version if request is not None else negotiate_version(fields, {})[0]
    headers = [
        *(_COMMON if progress.origin is not ErrorOrigin.XML_OPERATION else _xml_headers(answer.status)),
        (b"x-ms-request-id", request_id.encode()),
        *answer.headers,
        (b"Content-Length", b"%d" % len(answer.body)),
    ]
    if terms is not None:
        headers += consistency.write_session(terms)
    if version:
        headers.append((b"x-ms-version", version.encode()))
    if version < FIRST_WITHOUT_ATOM and (b"Content-Type", Format.ATOM.content_type) in answer.headers:
        headers.append((b"DataServiceVersion", b"1.0;"))
    client_request_id = fields.get(b"x-ms-client-request-id")
    if client_request_id is not None and len(client_request_id) <= _CLIENT_REQUEST_ID_LIMIT:
        headers.append((b"x-ms-client-request-id", client_request_id))
    rules = _cors_rules(progress.account)
    if rules and method != "OPTIONS":
        headers += response_headers(rules, method, fields.get(b"origin"), headers)
    return Response(answer.status, headers, answer.body, answer.reason)
