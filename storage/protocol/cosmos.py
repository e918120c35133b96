"""Cosmos responses to refused requests and to batches, modelled on recorded responses.

Texts are those of the service in 2022, without details of its back end.
https://learn.microsoft.com/azure/cosmos-db/table/faq
"""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from storage.domain import errors
from storage.domain.errors import InvalidInput, InvalidResourceName, ServerBusy, StorageError
from storage.protocol.accept import Format, read_best
from storage.protocol.errors import HEADERS
from storage.protocol.http_request import Headers

RETRY_AFTER: Final = "1000"  # milliseconds after which a client should repeat a request to a busy server
_LANGUAGE: Final = "en-us"

CONTENT_TYPES: Final[Mapping[Format, bytes]] = {
    Format.JSON_NONE: b"application/json;odata=nometadata",
    Format.JSON_MINIMAL: b"application/json;odata=minimalmetadata",
    Format.JSON_FULL: b"application/json;odata=fullmetadata",
}
OK: Final = b"Ok"  # the reason phrase of 200, and of 201 where a table is created
NO_CONTENT: Final = (b"Content-Type", b"application/json")  # sent where there is no content too


class _Form(NamedTuple):
    """Form of a Cosmos error; ``has_activity`` marks errors from below its Table API."""

    code: str
    text: str
    status: int
    has_activity: bool = True


_NOT_FOUND: Final = _Form("ResourceNotFound", "The specified resource does not exist.", 404, False)
_BAD_URL: Final = _Form("InvalidInput", "Request url is invalid.", 400)
_BAD_VALUE: Final = _Form("InvalidInput", "One of the input values is invalid.", 400)
_UNAUTHORIZED: Final = _Form(
    "Unauthorized",
    "The input authorization token can't serve the request. The wrong key is being used or the expected payload is "
    "not built as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized.",
    401,
)
_FORBIDDEN: Final = _Form(
    "Forbidden", "This request is not authorized to perform this operation using this permission.", 403
)
_TOO_LARGE: Final = _Form("RequestEntityTooLarge", "Request size is too large.", 413)
_THROTTLED: Final = _Form(
    "429",
    f'Message: {{"Errors":["{errors.TooManyRequests.message} Learn more: http://aka.ms/cosmosdb-error-429"]}}',
    429,
)
# the code is inferred, the rest is what the service's emulator answers: azure-cosmos-dotnet-v2 #669
_TIMED_OUT: Final = _Form(
    "RequestTimeout",
    'Message: {"Errors":["The requested operation exceeded maximum alloted time."]}',
    408,
)

_FORMS: Final[Mapping[type[StorageError], _Form]] = {
    errors.TableNotFound: _NOT_FOUND,
    errors.TableAlreadyExists: _Form("TableAlreadyExists", "The specified table already exists.", 409, False),
    errors.PropertiesNeedValue: _Form("PropertiesNeedValue", "PartitionKey/RowKey cannot be empty", 400),
    errors.InvalidUri: _BAD_URL,
    errors.RequestUrlFailedToParse: _BAD_URL,
    errors.InvalidQueryParameterValue: _BAD_URL,
    errors.OutOfRangeQueryParameterValue: _BAD_URL,
    errors.OutOfRangeInput: _BAD_VALUE,
    errors.KeyValueTooLarge: _BAD_VALUE,
    errors.AuthenticationFailed: _UNAUTHORIZED,
    errors.InvalidAuthenticationInfo: _UNAUTHORIZED,
    errors.AuthorizationFailure: _FORBIDDEN,
    errors.AuthorizationPermissionMismatch: _FORBIDDEN,
    errors.AuthorizationResourceTypeMismatch: _FORBIDDEN,
    errors.AuthorizationServiceMismatch: _FORBIDDEN,
    errors.AuthorizationProtocolMismatch: _FORBIDDEN,
    errors.AuthorizationSourceIPMismatch: _FORBIDDEN,
    errors.NotImplemented: _Form("NotImplemented", "The requested operation is not supported.", 501),
    errors.EntityTooLarge: _TOO_LARGE,
    errors.PropertyValueTooLarge: _TOO_LARGE,
    errors.RequestBodyTooLarge: _TOO_LARGE,
    errors.BadRequest: _Form("BadRequest", f'Message: {{"Errors":["{errors.BadRequest.message}"]}}', 400),
    errors.ServerBusy: _THROTTLED,
    errors.TooManyRequests: _THROTTLED,
    errors.OperationTimedOut: _TIMED_OUT,
    errors.InternalError: _Form("InternalServerError", errors.InternalError.message, 500, False),
}
# raised by the Table API itself; what comes from below it names an activity
_OF_THE_TABLE_API: Final = (
    errors.ResourceNotFound,
    errors.EntityAlreadyExists,
    errors.UpdateConditionNotSatisfied,
)
# refused before the operation begins: the content type does not depend on what the client accepts
_EARLY: Final = (
    errors.PropertiesNeedValue, errors.InvalidUri, errors.MethodNotAllowed, errors.NotImplemented,
)  # fmt: skip
# reported of a change set as a whole
_WITHOUT_INDEX: Final = (errors.TableNotFound, errors.AuthenticationFailed, errors.AuthorizationFailure)


class ErrorAnswer(NamedTuple):
    status: int
    body: bytes


def write_error(error: StorageError, request_id: str, index: int | None = None) -> ErrorAnswer:
    """Serialize an error; ``index`` is the position of a failed operation in its change set."""
    form = _form(error)
    if index is None or isinstance(error, _WITHOUT_INDEX):
        text, end = form.text, "\n"
    else:
        text, end = f"{index}:{form.text}", "\n\n"
    activity = f"\r\nActivityId: {request_id}, Tablero" if form.has_activity else ""
    value = f"{text}{activity}{end}RequestID:{request_id}\n"
    content = {"odata.error": {"code": form.code, "message": {"lang": _LANGUAGE, "value": value}}}
    # followed by a line end, as in the service
    return ErrorAnswer(form.status, json.dumps(content, separators=(",", ":")).encode() + b"\r\n")


def refuse(
    error: StorageError, request_id: str, method: str, fields: Mapping[bytes, bytes]
) -> tuple[int, Headers, bytes]:
    """Return status, headers and body of the response to a refused request outside a batch."""
    written = write_error(error, request_id)
    headers: Headers = [(b"Content-Type", _error_type(error, method, fields))]
    if written.status == _THROTTLED.status:
        busy = f"{error.retry_after}000" if isinstance(error, ServerBusy) else RETRY_AFTER
        wait = error.details.get("x-ms-retry-after-ms", busy)
        headers.append((b"x-ms-retry-after-ms", wait.encode()))
    headers += [(name.encode(), error.details[name].encode()) for name in HEADERS if name in error.details]
    return written.status, headers, written.body


def _error_type(error: StorageError, method: str, fields: Mapping[bytes, bytes]) -> bytes:
    if method == "DELETE" or b"if-match" in fields or isinstance(error, _EARLY):
        return CONTENT_TYPES[Format.JSON_FULL]
    wanted = read_best(None, fields.get(b"accept"))
    return CONTENT_TYPES[wanted if wanted in (Format.JSON_NONE, Format.JSON_FULL) else Format.JSON_MINIMAL]


def _form(error: StorageError) -> _Form:
    for kind in type(error).__mro__:
        if kind in _FORMS:
            return _FORMS[kind]
    if isinstance(error, InvalidResourceName):
        return _BAD_VALUE._replace(text=error.text)
    if type(error) is InvalidInput:
        return _BAD_VALUE if error.span is None else _BAD_URL  # an error with a span is one of a filter
    return _Form(error.code, error.text, error.status, not isinstance(error, _OF_THE_TABLE_API))
