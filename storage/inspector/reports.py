"""What an inspection reports."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from storage.domain.access.grants import Grant
from storage.domain.errors import StorageError
from storage.domain.requests.statuses import status_of
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import ExplainedParameter


class Mistake(StrEnum):
    # how a signature was carried
    PLUS_AS_SPACE = "a plus became a space"
    ENCODED_TWICE = "encoded twice"
    URL_SAFE_BASE64 = "base64 for URLs"
    PADDING = "padding is missing"
    HEXADECIMAL = "hexadecimal"
    # by which key
    RETIRED_KEY = "a key that was replaced"
    OTHER_ACCOUNT_KEY = "key of another account"
    DEVELOPMENT_KEY = "development key"
    KEY_NOT_DECODED = "key not decoded"
    UNKNOWN_KEY = "no key that is known"
    # what was signed instead
    OTHER_ACCOUNT = "name of another account"
    SECONDARY_ACCOUNT = "name of the secondary"
    ACCOUNT_DOUBLED = "account twice"
    ACCOUNT_NOT_DOUBLED = "account only once"
    TABLE_CASE = "case of the table name"
    OTHER_LAYOUT = "fields of another version"
    FIELD_ORDER = "order of fields"
    TIME_PRECISION = "precision of a time"
    PARAMETER_CHANGED = "parameter changed"
    PARAMETER_ADDED = "parameter added"
    SIGNED_ENCODED = "signed percent-encoded"
    FINAL_NEWLINE = "newline at the end"
    NEWLINE = "other newlines"
    ESCAPED_NEWLINE = "escaped newlines"
    OTHER_SCHEME = "other scheme"
    BLOB_LAYOUT = "layout of other services"
    DATE_HEADER = "Date instead of x-ms-date"
    NO_DATE_SIGNED = "date left out"
    METHOD = "other method"
    CONTENT_TYPE_MISSING = "Content-Type lost"
    CONTENT_TYPE_ADDED = "Content-Type added"
    CONTENT_TYPE_OTHER = "other Content-Type"
    CONTENT_MD5 = "Content-MD5"
    PATH_DECODED = "path decoded"
    PATH_ENCODED = "path encoded"
    TRAILING_SLASH = "trailing slash"
    QUERY_SIGNED = "whole query signed"
    COMP_LEFT_OUT = "comp left out"
    WHOLE_URL = "whole URL signed"
    # what else decides
    NO_AUTHORIZATION = "no authorization"
    TWO_AUTHORIZATIONS = "two authorizations"
    BEARER = "bearer token"
    MALFORMED_AUTHORIZATION = "malformed Authorization"
    ACCOUNT_DIFFERS = "another account addressed"
    ACCOUNT_NOT_SAID = "which account"
    ELSEWHERE = "address of another service"
    NO_HOST = "no host"
    NO_DATE = "no date"
    CLOCK_SKEW = "clock"
    PARAMETER_TWICE = "parameter twice"
    MALFORMED_PARAMETER = "malformed parameter"
    PARAMETER_MISSING = "parameter missing"
    USER_DELEGATION = "user delegation"
    EXPIRED = "expired"
    NOT_YET_VALID = "not yet valid"
    POLICY_MISSING = "policy missing"
    POLICY_RENAMED = "policy renamed"
    POLICY_CONFLICT = "policy says it too"
    POLICY_INCOMPLETE = "policy incomplete"
    TABLE_MISSING = "table missing"
    HTTPS_ONLY = "https only"
    ADDRESS_OUTSIDE = "address outside"
    NO_TABLE_SERVICE = "no table service"
    RESOURCE_TYPE = "resource type"
    PERMISSION = "permission"
    NOT_BY_TOKEN = "no token allows it"  # noqa: S105
    OTHER_TABLE = "other table"
    OUTSIDE_RANGE = "outside of the key range"
    SECONDARY_WRITE = "write to the secondary"
    READ_ONLY = "account is read-only"
    BLOCKED = "blocked"
    ACCOUNT_DISABLED = "account switched off"
    KEYS_NOT_ACCEPTED = "keys not accepted"
    NETWORK = "network not accepted"
    # connection strings
    PART_MALFORMED = "part without a sign"
    PART_TWICE = "part twice"
    PART_UNKNOWN = "unknown part"
    NO_ACCOUNT_NAME = "no account name"
    NO_CREDENTIAL = "no key and no signature"
    KEY_UNKNOWN = "none of the keys"
    KEY_NOT_BASE64 = "key is no base64"
    NO_TABLE_ENDPOINT = "no table endpoint"
    ENDPOINT_MALFORMED = "endpoint is no URL"
    ENDPOINT_WITHOUT_ACCOUNT = "endpoint without the account"
    ENDPOINT_OTHER_ACCOUNT = "endpoint of another account"
    PROTOCOL_DIFFERS = "protocol differs"
    # how it was pasted
    LINE_UNREADABLE = "line is no header"
    SHELL_VARIABLE = "shell variable"
    OPTION_UNKNOWN = "unknown option"
    QUOTE_OPEN = "quote not closed"


@dataclass(frozen=True, slots=True)
class Finding:
    """``details`` fill the places of its sentence; none of them is a secret."""

    mistake: Mistake
    details: tuple[tuple[str, str], ...] = ()


def finding(mistake: Mistake, **details: str) -> Finding:
    return Finding(mistake, tuple(details.items()))


def mask(secret: str) -> str:
    """The last four characters, of what has many more."""
    return f"…{secret[-4:]}" if len(secret) >= 16 else "…"


class ReportKind(StrEnum):
    TOKEN = "token"  # noqa: S105
    REQUEST = "request"
    CONNECTION = "connection"


class FieldKind(StrEnum):
    """A field of a request."""

    METHOD = "method"
    ACCOUNT = "account"
    SECONDARY = "secondary"
    RESOURCE = "resource"
    COMP = "comp"
    OPTION = "option"
    DATE = "date"
    OTHER_DATE = "other date"
    CONTENT_TYPE = "content type"
    CONTENT_MD5 = "content md5"
    SCHEME = "scheme"
    SIGNER = "signer"
    SIGNATURE = "signature"
    VERSION = "version"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class RequestField:
    """Of a request; ``is_signed``: whether the signature covers it."""

    name: str
    value: str
    part: FieldKind
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionSetting:
    """Of a connection string, as it may be shown."""

    name: str
    value: str
    problem: Finding | None = None


@dataclass(frozen=True, slots=True)
class SignedLine:
    """Of the text that is signed; ``name``: the field or header that it holds."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """``key`` is the name of the one that signed it; without ``error`` the request is let in."""

    key: str = ""
    error: StorageError | None = None
    grant: Grant | None = None

    @property
    def status(self) -> int:
        return 0 if self.error is None else status_of(self.error)

    @property
    def detail(self) -> str:
        return "" if self.error is None else self.error.details.get("AuthenticationErrorDetail", "")


@dataclass(frozen=True, slots=True)
class Report:
    """``account`` is empty where it could not be told; without ``verdict`` nobody here can say whether it is accepted.

    ``parameters`` are of a token, ``fields`` of a request, ``settings`` of a connection string; a request may come
    with a token, a connection string may hold one.
    """

    kind: ReportKind
    account: str = ""
    is_managed: bool = False
    parameters: Sequence[ExplainedParameter] = ()
    fields: Sequence[RequestField] = ()
    settings: Sequence[ConnectionSetting] = ()
    lines: Sequence[SignedLine] = ()
    token: TableSas | AccountSas | None = field(default=None, repr=False)
    verdict: Verdict | None = None
    found: Sequence[Finding] = ()
    key: str = ""  # the name of the one that signed it, or that a connection string holds

    @property
    def text(self) -> str:
        """The whole text that is signed."""
        return "\n".join(line.text for line in self.lines)
