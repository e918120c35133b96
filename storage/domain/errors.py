"""The errors of the service, one class per error code of the Table service.

The class name is the code, ``message`` is Azure's own sentence, ``status`` the HTTP status.
https://learn.microsoft.com/rest/api/storageservices/table-service-error-codes
https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
"""

from enum import StrEnum
from typing import ClassVar, NamedTuple, Self

from storage.domain.refusals import Reason, Refusal


class PartKind(StrEnum):
    OPTION = "option"  # an option of the query string
    HEADER = "header"
    PROPERTY = "property"
    BODY = "body"


class RequestPart(NamedTuple):
    """Part of a request; options, headers and properties have a name."""

    kind: PartKind
    name: str = ""


class StorageError(Exception):
    """An error that a client may see: code, message and, in XML bodies, named details."""

    message: ClassVar[str] = "The server encountered an internal error. Please retry the request."
    status = 400
    part: RequestPart | None = None  # the part of the request at fault
    rule: str = ""  # rule of storage.domain.requests.strictness, if the account refuses what Azure refuses

    def __init__(self, message: str | Refusal | None = None, **details: str) -> None:
        self.text = self.message if message is None else str(message)
        self._refusal = message if isinstance(message, Refusal) else None
        self.details = details
        if "WWW-Authenticate" in details:
            self.status = 401
        self.span: tuple[int, int] | None = None  # the characters at fault
        super().__init__(self.text)

    def within(self, kind: PartKind, name: str = "") -> Self:
        """Record the part of the request at fault, unless a smaller part is recorded already."""
        self.part = self.part or RequestPart(kind, name)
        return self

    def at(self, start: int, end: int) -> Self:
        """Record the position of the invalid characters."""
        self.span = (start, end)
        return self

    @property
    def code(self) -> str:
        return type(self).__name__

    @property
    def refusal(self) -> Refusal:
        """Return the reason for the error, for callers that have their own text for it."""
        return self._refusal or Reason.OTHER.of(text=self.text)


class ChangeSetError(Exception):
    """A change of a change set failed and all were rolled back; ``index`` counts from zero."""

    def __init__(self, index: int, error: StorageError) -> None:
        self.index = index
        self.error = error
        super().__init__(index, error)


# invalid requests


class InvalidInput(StorageError):
    message = "One of the request inputs is not valid."


class BadRequest(StorageError):
    """BadRequest, an error of Cosmos accounts."""

    message = (
        "The input name is invalid. Ensure to provide a unique non-empty string less than '255' characters."
    )


class OutOfRangeInput(StorageError):
    message = "One of the request inputs is out of range."


class InvalidResourceName(StorageError):
    message = "The specifed resource name contains invalid characters."  # sic: clients compare the sentence


class InvalidUri(StorageError):
    message = "The requested URI does not represent any resource on the server."


class RequestUrlFailedToParse(StorageError):
    message = "The url in the request could not be parsed."


class InvalidHeaderValue(StorageError):
    message = "The value for one of the HTTP headers is not in the correct format."


class MissingRequiredHeader(StorageError):
    message = "An HTTP header that's mandatory for this request is not specified."


class MissingRequiredQueryParameter(StorageError):
    message = "A query parameter that's mandatory for this request is not specified."


class HostInformationNotPresent(StorageError):
    message = (
        "The required host information is not present in the request. "
        "You must send a non-empty Host header or include the absolute URI in the request line."
    )


class InvalidQueryParameterValue(StorageError):
    message = "Value for one of the query parameters specified in the request URI is invalid."


class OutOfRangeQueryParameterValue(StorageError):
    message = "One of the query parameters specified in the request URI is outside the permissible range."


class InvalidMd5(StorageError):
    message = (
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    )


class Md5Mismatch(StorageError):
    message = (
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    )


class MissingContentLengthHeader(StorageError):
    message = "The Content-Length header was not specified."
    status = 411


class RequestBodyTooLarge(StorageError):
    message = "The request body is too large and exceeds the maximum permissible limit."
    status = 413


class MediaTypeNotSupported(StorageError):
    message = "None of the provided media types are supported"
    status = 415


class AtomFormatNotSupported(StorageError):
    message = "Atom format is not supported."
    status = 415


class JsonFormatNotSupported(StorageError):
    message = "JSON format is not supported."
    status = 415


class InvalidXmlDocument(StorageError):
    message = "XML specified is not syntactically valid."


class InvalidXmlNodeValue(StorageError):
    message = "The value provided for one of the XML nodes in the request body was not in the correct format."


class MissingRequiredXmlNode(StorageError):
    message = "A required XML node was not specified in the request body."


class UnsupportedXmlNode(StorageError):
    message = "One of the XML nodes specified in the request body is not supported."


class NotImplemented(StorageError):
    message = "The requested operation is not implemented on the specified resource."
    status = 501


class HttpVersionNotSupported(StorageError):
    message = "The HTTP version of the request is not supported."
    status = 505


# methods


class InvalidHttpVerb(StorageError):
    message = "The HTTP verb specified was not recognized by the server."


class MethodNotAllowed(StorageError):
    message = "The requested method is not allowed on the specified resource."
    status = 405


class UnsupportedHttpVerb(StorageError):
    message = "The resource doesn't support the specified HTTP verb."
    status = 405


class XMethodIncorrectCount(StorageError):
    message = "More than one X-HTTP-Method is specified."


class XMethodIncorrectValue(StorageError):
    message = "The specified X-HTTP-Method is invalid."


class XMethodNotUsingPost(StorageError):
    message = "The request uses X-HTTP-Method with an HTTP verb other than POST."


# authentication and authorization


class AuthenticationFailed(StorageError):
    message = (
        "Server failed to authenticate the request. "
        "Make sure the value of Authorization header is formed correctly including the signature."
    )
    status = 403


class InvalidAuthenticationInfo(StorageError):
    message = (
        "The authentication information was not provided in the correct format. "
        "Verify the value of Authorization header."
    )


class AuthorizationFailure(StorageError):
    message = "This request is not authorized to perform this operation."
    status = 403


class AuthorizationPermissionMismatch(StorageError):
    message = "This request is not authorized to perform this operation using this permission."
    status = 403


class AuthorizationResourceTypeMismatch(StorageError):
    message = "This request is not authorized to perform this operation using this resource type."
    status = 403


class AuthorizationServiceMismatch(StorageError):
    message = "This request is not authorized to perform this operation using this service."
    status = 403


class AuthorizationProtocolMismatch(StorageError):
    message = "This request is not authorized to perform this operation using this protocol."
    status = 403


class AuthorizationSourceIPMismatch(StorageError):
    """The source address is not allowed; set it by ``message.format(address)``."""

    message = "This request is not authorized to perform this operation using this source IP {}."
    status = 403


class KeyBasedAuthenticationNotPermitted(StorageError):
    message = "Key based authentication is not permitted on this storage account."
    status = 403


class CorsPreflightFailure(StorageError):
    message = "CORS not enabled or no matching rule found for this request."
    status = 403


class AccountIsDisabled(StorageError):
    message = "The specified account is disabled."
    status = 403


class InsufficientAccountPermissions(StorageError):
    message = "Write operations are not allowed."
    status = 403


# tables and entities


class TableAlreadyExists(StorageError):
    message = "The table specified already exists."
    status = 409


class TableBeingDeleted(StorageError):
    message = "The specified table is being deleted. Try operation later."
    status = 409


class TableNotFound(StorageError):
    message = "The table specified does not exist."
    status = 404


class ResourceNotFound(StorageError):
    message = "The specified resource does not exist."
    status = 404


class EntityAlreadyExists(StorageError):
    message = "The specified entity already exists."
    status = 409


class UpdateConditionNotSatisfied(StorageError):
    message = "The update condition specified in the request was not satisfied."
    status = 412


class PropertiesNeedValue(StorageError):
    message = "The values are not specified for all properties in the entity."


class TooManyProperties(StorageError):
    message = (
        "The entity contains more properties than allowed. Each entity can include up to 252 properties "
        "to store data. Each entity also has 3 system properties."
    )


class PropertyNameTooLong(StorageError):
    message = "The property name exceeds the maximum allowed length (255)."


class PropertyNameInvalid(StorageError):
    message = "The property name is invalid."


class DuplicatePropertiesSpecified(StorageError):
    message = "A property is specified more than one time."


class PropertyValueTooLarge(StorageError):
    message = (
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, "
        "it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    )


class KeyValueTooLarge(StorageError):
    message = "The key value exceeds the maximum allowed size."


class EntityTooLarge(StorageError):
    message = "The entity is larger than the maximum allowed size (1MB)."


# change sets


class InvalidDuplicateRow(StorageError):
    message = (
        "The batch request contains multiple changes with same row key. "
        "An entity can appear only once in a batch request."
    )


class CommandsInBatchActOnDifferentPartitions(StorageError):
    message = "All commands in a batch must operate on same entity group."


# the server


class ServerBusy(StorageError):
    """The server is busy; clients get this code for all subclasses."""

    message = "The server is currently unable to receive requests. Please retry your request."
    status = 503
    retry_after = 1  # seconds

    @property
    def code(self) -> str:
        return ServerBusy.__name__


class RequestMemoryFull(ServerBusy):
    """Large request bodies have used up the memory budget."""


class TooManyRequests(StorageError):
    """A table has exceeded its throughput; an error of Cosmos accounts."""

    message = (
        "Request rate is large. More Request Units may be needed, so no changes were made. "
        "Please retry this request later."
    )
    status = 429


class OperationTimedOut(StorageError):
    message = "The operation could not be completed within the permitted time."
    status = 500


class InternalError(StorageError):
    message = "The server encountered an internal error. Please retry the request."
    status = 500


class DamagedPage(InternalError):
    """A page on the database's disk is damaged; other data stays usable."""

    message = (
        "A page of this table is damaged on the disk of the database. The operator of the server finds it with the"
        " command tablero doctor --pages."
    )

    @property
    def code(self) -> str:
        return InternalError.__name__
