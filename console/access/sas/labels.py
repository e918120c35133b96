"""Names and explanations of SAS tokens and their parameters, and of the inspector's findings."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

from storage.domain.sas.explain import Meaning
from storage.domain.sas.known import TokenState
from storage.inspector import UnreadableText
from storage.inspector.reports import FieldKind

STATES: Final[Mapping[TokenState, Promise]] = {
    TokenState.ACTIVE: gettext_lazy("active"),
    TokenState.EXPIRES_SOON: gettext_lazy("expires soon"),
    TokenState.NOT_YET_VALID: gettext_lazy("not yet valid"),
    TokenState.EXPIRED: gettext_lazy("expired"),
    TokenState.REVOKED: gettext_lazy("revoked"),
    TokenState.ORPHANED: gettext_lazy("policy missing"),
    TokenState.CONFLICTING: gettext_lazy("conflicts with policy"),
    TokenState.BLOCKED: gettext_lazy("blocked"),
}
BADGES: Final[Mapping[TokenState, str]] = {
    TokenState.ACTIVE: "ok",
    TokenState.EXPIRES_SOON: "warn",
    TokenState.NOT_YET_VALID: "info",
    TokenState.EXPIRED: "",
    TokenState.REVOKED: "danger",
    TokenState.ORPHANED: "danger",
    TokenState.CONFLICTING: "danger",
    TokenState.BLOCKED: "danger",
}
REASONS: Final[Mapping[TokenState, Promise]] = {
    TokenState.ACTIVE: gettext_lazy("Requests with this token are accepted."),
    TokenState.EXPIRES_SOON: gettext_lazy("Requests with this token are accepted, but it expires soon."),
    TokenState.NOT_YET_VALID: gettext_lazy("Requests with this token are refused: it is not yet valid."),
    TokenState.EXPIRED: gettext_lazy("Requests with this token are refused: it has expired."),
    TokenState.REVOKED: gettext_lazy(
        "Requests with this token are refused: the key that signed it was rotated."
    ),
    TokenState.ORPHANED: gettext_lazy("Requests with this token are refused: its policy does not exist."),
    TokenState.CONFLICTING: gettext_lazy(
        "Requests with this token are refused: it sets a field that its policy sets too, or neither sets a"
        " required one."
    ),
    TokenState.BLOCKED: gettext_lazy("Requests with this token are refused: it is blocked."),
}

PERMISSIONS: Final[Mapping[str, Promise]] = {
    "r": pgettext_lazy("permission", "Query"),
    "a": pgettext_lazy("permission", "Add"),
    "u": pgettext_lazy("permission", "Update"),
    "d": pgettext_lazy("permission", "Delete"),
    "w": pgettext_lazy("permission", "Write"),
    "c": pgettext_lazy("permission", "Create"),
    "l": pgettext_lazy("permission", "List"),
}
RESOURCE_TYPES: Final[Mapping[str, Promise]] = {
    "s": gettext_lazy("Service"),
    "c": gettext_lazy("Tables"),
    "o": gettext_lazy("Entities"),
}
SERVICES: Final[Mapping[str, Promise]] = {
    "b": gettext_lazy("blobs"),
    "q": gettext_lazy("queues"),
    "t": gettext_lazy("tables"),
    "f": gettext_lazy("files"),
}
LETTERS: Final[Mapping[Meaning, Mapping[str, Promise]]] = {
    Meaning.PERMISSIONS: PERMISSIONS,
    Meaning.RESOURCE_TYPES: RESOURCE_TYPES,
    Meaning.SERVICES: SERVICES,
}

MEANINGS: Final[Mapping[Meaning, Promise]] = {
    Meaning.VERSION: gettext_lazy("Version"),
    Meaning.TABLE: gettext_lazy("Table"),
    Meaning.SERVICES: gettext_lazy("Services"),
    Meaning.RESOURCE_TYPES: gettext_lazy("Resource types"),
    Meaning.PERMISSIONS: gettext_lazy("Permissions"),
    Meaning.START: gettext_lazy("Start"),
    Meaning.EXPIRY: gettext_lazy("Expiry"),
    Meaning.ADDRESS: gettext_lazy("IP addresses"),
    Meaning.PROTOCOL: gettext_lazy("Protocol"),
    Meaning.IDENTIFIER: gettext_lazy("Policy"),
    Meaning.START_PARTITION: gettext_lazy("First PartitionKey"),
    Meaning.START_ROW: gettext_lazy("First RowKey"),
    Meaning.END_PARTITION: gettext_lazy("Last PartitionKey"),
    Meaning.END_ROW: gettext_lazy("Last RowKey"),
    Meaning.ENCRYPTION_SCOPE: gettext_lazy("Encryption scope"),
    Meaning.SIGNATURE: gettext_lazy("Signature"),
    Meaning.UNKNOWN: gettext_lazy("Not a SAS parameter"),
}

# the inspector

UNREADABLE_TEXTS: Final[Mapping[UnreadableText, Promise]] = {
    UnreadableText.EMPTY: gettext_lazy(
        "Nothing to explain yet. Paste a token, a connection string or a request."
    ),
    UnreadableText.TOO_LONG: gettext_lazy(
        "The text is too long: the limit is 64 KiB. You can leave out the body of a request."
    ),
    UnreadableText.HEADERS_ONLY: gettext_lazy(
        "These are only the headers of a request. Include its first line, such as “GET /acme/people HTTP/1.1”."
    ),
    UnreadableText.NOTHING_KNOWN: gettext_lazy(
        "This is not a token, a connection string or a request. A request starts with its method, such as"
        " “GET /acme/people HTTP/1.1”, or with “curl”."
    ),
}

FIELD_NAMES: Final[Mapping[FieldKind, Promise]] = {
    FieldKind.METHOD: gettext_lazy("Method"),
    FieldKind.ACCOUNT: gettext_lazy("Account"),
    FieldKind.SECONDARY: gettext_lazy("Secondary"),
    FieldKind.RESOURCE: gettext_lazy("Path"),
    FieldKind.SCHEME: gettext_lazy("Scheme"),
    FieldKind.SIGNER: gettext_lazy("Signing account"),
    FieldKind.SIGNATURE: gettext_lazy("Signature"),
}
FIELD_TEXTS: Final[Mapping[FieldKind, Promise]] = {
    FieldKind.METHOD: gettext_lazy("The HTTP method."),
    FieldKind.ACCOUNT: gettext_lazy("The account in the URL."),
    FieldKind.SECONDARY: gettext_lazy("The secondary endpoint, which is read-only."),
    FieldKind.RESOURCE: gettext_lazy("The path as sent, with its percent signs."),
    FieldKind.COMP: gettext_lazy("The only signed part of the query string."),
    FieldKind.OPTION: gettext_lazy(
        "Part of the query string. Changing it does not invalidate the signature."
    ),
    FieldKind.DATE: gettext_lazy("When the request was signed. It is valid for 15 minutes before and after."),
    FieldKind.OTHER_DATE: gettext_lazy("Ignored, because x-ms-date is present."),
    FieldKind.CONTENT_TYPE: gettext_lazy("The type of the body."),
    FieldKind.CONTENT_MD5: gettext_lazy("The checksum of the body."),
    FieldKind.SCHEME: gettext_lazy(
        "What is signed: SharedKey signs everything, SharedKeyLite the date and the resource."
    ),
    FieldKind.SIGNER: gettext_lazy("The account whose key signed the request."),
    FieldKind.SIGNATURE: gettext_lazy("Proves that the sender has the key."),
    FieldKind.VERSION: gettext_lazy("The service version to use."),
}

SETTING_TEXTS: Final[Mapping[str, Promise]] = {
    "DefaultEndpointsProtocol": gettext_lazy("The protocol for endpoints that are not set explicitly."),
    "AccountName": gettext_lazy("The account."),
    "AccountKey": gettext_lazy("The secret key. It grants full access to the account."),
    "SharedAccessSignature": gettext_lazy("A SAS token instead of the key, explained below."),
    "EndpointSuffix": gettext_lazy("The domain for endpoints that are not set explicitly."),
    "TableEndpoint": gettext_lazy("The address of the account's tables."),
    "TableSecondaryEndpoint": gettext_lazy("Where the tables can be read when the primary is unavailable."),
    "UseDevelopmentStorage": gettext_lazy("The account devstoreaccount1 at 127.0.0.1, port 10002."),
}
