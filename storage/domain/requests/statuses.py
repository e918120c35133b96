"""HTTP statuses of the errors.

https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
"""

from typing import Final

from storage.domain import errors
from storage.domain.errors import StorageError


def status_of(error: StorageError | type[StorageError]) -> int:
    if isinstance(error, StorageError) and "WWW-Authenticate" in error.details:
        return 401
    return _STATUS[error if isinstance(error, type) else type(error)]


_STATUS: Final[dict[type[StorageError], int]] = {
    errors.InvalidInput: 400,
    errors.OutOfRangeInput: 400,
    errors.InvalidResourceName: 400,
    errors.InvalidUri: 400,
    errors.RequestUrlFailedToParse: 400,
    errors.InvalidHeaderValue: 400,
    errors.MissingRequiredHeader: 400,
    errors.MissingRequiredQueryParameter: 400,
    errors.UnsupportedHeader: 400,
    errors.HostInformationNotPresent: 400,
    errors.InvalidQueryParameterValue: 400,
    errors.OutOfRangeQueryParameterValue: 400,
    errors.InvalidMd5: 400,
    errors.Md5Mismatch: 400,
    errors.MissingContentLengthHeader: 411,
    errors.RequestBodyTooLarge: 413,
    errors.MediaTypeNotSupported: 415,
    errors.AtomFormatNotSupported: 415,
    errors.JsonFormatNotSupported: 415,
    errors.InvalidXmlDocument: 400,
    errors.InvalidXmlNodeValue: 400,
    errors.MissingRequiredXmlNode: 400,
    errors.UnsupportedXmlNode: 400,
    errors.NotImplemented: 501,
    errors.InvalidHttpVerb: 400,
    errors.MethodNotAllowed: 405,
    errors.UnsupportedHttpVerb: 405,
    errors.XMethodIncorrectCount: 400,
    errors.XMethodIncorrectValue: 400,
    errors.XMethodNotUsingPost: 400,
    errors.AuthenticationFailed: 403,
    errors.InvalidAuthenticationInfo: 400,
    errors.AuthorizationFailure: 403,
    errors.AccountIsDisabled: 403,
    errors.AuthorizationPermissionMismatch: 403,
    errors.AuthorizationResourceTypeMismatch: 403,
    errors.AuthorizationServiceMismatch: 403,
    errors.AuthorizationProtocolMismatch: 403,
    errors.AuthorizationSourceIPMismatch: 403,
    errors.KeyBasedAuthenticationNotPermitted: 403,
    errors.CorsPreflightFailure: 403,
    errors.InsufficientAccountPermissions: 403,
    errors.TableAlreadyExists: 409,
    errors.TableBeingDeleted: 409,
    errors.TableNotFound: 404,
    errors.ResourceNotFound: 404,
    errors.EntityAlreadyExists: 409,
    errors.UpdateConditionNotSatisfied: 412,
    errors.PropertiesNeedValue: 400,
    errors.TooManyProperties: 400,
    errors.PropertyNameTooLong: 400,
    errors.PropertyNameInvalid: 400,
    errors.DuplicatePropertiesSpecified: 400,
    errors.PropertyValueTooLarge: 400,
    errors.KeyValueTooLarge: 400,
    errors.InvalidValueType: 400,
    errors.EntityTooLarge: 400,
    errors.InvalidDuplicateRow: 400,
    errors.CommandsInBatchActOnDifferentPartitions: 400,
    errors.ServerBusy: 503,
    errors.OperationTimedOut: 500,
    errors.InternalError: 500,
}
