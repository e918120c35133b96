"""The report of an inspection, as codes that callers put into words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from storage.domain.errors import StorageError
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import ExplainedParameter


class Mistake(StrEnum):
    # the signature was changed in transit
    PLUS_AS_SPACE = "a plus became a space"
    ENCODED_TWICE = "encoded twice"
    URL_SAFE_BASE64 = "base64 for URLs"
    PADDING = "padding is missing"
    HEXADECIMAL = "hexadecimal"
    # the signing key
    RETIRED_KEY = "replaced key"
    OTHER_ACCOUNT_KEY = "key of another account"
    DEVELOPMENT_KEY = "development key"
    KEY_NOT_DECODED = "key not decoded"
    UNKNOWN_KEY = "unknown key"
    # another text was signed
    OTHER_ACCOUNT = "name of another account"
    ACCOUNT_DOUBLED = "account twice"
    ACCOUNT_NOT_DOUBLED = "account only once"
    TABLE_CASE = "case of the table name"
    PARAMETER_CHANGED = "parameter changed"
    PARAMETER_ADDED = "parameter added"
    SIGNED_ENCODED = "signed percent-encoded"
    FINAL_NEWLINE = "newline at the end"
    NEWLINE = "other newlines"
    ESCAPED_NEWLINE = "escaped newlines"
    OTHER_SCHEME = "other scheme"
    NO_DATE_SIGNED = "date left out"
    CONTENT_TYPE_ADDED = "Content-Type added"
    CONTENT_TYPE_OTHER = "other Content-Type"
    PATH_DECODED = "path decoded"
    QUERY_SIGNED = "whole query signed"
    COMP_LEFT_OUT = "comp left out"
    # other rules
    NO_AUTHORIZATION = "no authorization"
    TWO_AUTHORIZATIONS = "two authorizations"
    BEARER = "bearer token"
    MALFORMED_AUTHORIZATION = "malformed Authorization"
    ACCOUNT_DIFFERS = "another account addressed"
    ACCOUNT_NOT_NAMED = "account not named"
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
    POLICY_CONFLICT = "also set by the policy"
    POLICY_INCOMPLETE = "policy incomplete"
    TABLE_MISSING = "table missing"
    HTTPS_ONLY = "https only"
    ADDRESS_OUTSIDE = "address outside"
    NO_TABLE_SERVICE = "no table service"
    RESOURCE_TYPE = "resource type"
    PERMISSION = "permission"
    NOT_BY_TOKEN = "not allowed for tokens"  # noqa: S105
    OTHER_TABLE = "other table"
    OUTSIDE_RANGE = "outside of the key range"
    RANGE_IN_COSMOS = "key range in a Cosmos account"
    SECONDARY_WRITE = "write to the secondary"
    READ_ONLY = "account is read-only"
    BLOCKED = "blocked"
    ACCOUNT_DISABLED = "account disabled"
    KEYS_NOT_ACCEPTED = "keys not accepted"
    NETWORK = "network not accepted"
    # connection strings
    PART_MALFORMED = "part without an equals sign"
    PART_UNKNOWN = "unknown part"
    NO_ACCOUNT_NAME = "no account name"
    NO_CREDENTIAL = "no key and no signature"
    KEY_UNKNOWN = "none of the keys"
    KEY_NOT_BASE64 = "key is not base64"
    NO_TABLE_ENDPOINT = "no table endpoint"
    ENDPOINT_MALFORMED = "endpoint is not a URL"
    ENDPOINT_WITHOUT_ACCOUNT = "endpoint without the account"
    ENDPOINT_OTHER_ACCOUNT = "endpoint of another account"
    # the pasted text
    LINE_UNREADABLE = "line is not a header"
    SHELL_VARIABLE = "shell variable"
    OPTION_UNKNOWN = "unknown option"


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake; ``details`` fill the placeholders of its message and contain no secrets."""

    mistake: Mistake
    details: tuple[tuple[str, str], ...] = ()


def finding(mistake: Mistake, **details: str) -> Finding:
    return Finding(mistake, tuple(details.items()))


def mask(secret: str) -> str:
    """Keep the last four characters of a long secret, and nothing of a short one."""
    return f"…{secret[-4:]}" if len(secret) >= 16 else "…"


class ReportKind(StrEnum):
    TOKEN = "token"  # noqa: S105
    REQUEST = "request"
    CONNECTION = "connection"


class FieldKind(StrEnum):
    """The kinds of fields of a request."""

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


@dataclass(frozen=True, slots=True)
class RequestField:
    """A field of a request; ``is_signed``: the signature covers it."""

    name: str
    value: str
    part: FieldKind
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionSetting:
    """A part of a connection string, masked if it is secret."""

    name: str
    value: str
    problem: Finding | None = None


@dataclass(frozen=True, slots=True)
class SignedLine:
    """A line of the signed text; ``name`` is the field or header that it contains."""

    name: str
    text: str


def name_lines(texts: Sequence[str], names: Sequence[str]) -> list[SignedLine]:
    """Name the lines of the signed text, unless a header or a copied value contains newlines itself."""
    named = names if len(texts) == len(names) else [""] * len(texts)
    return [SignedLine(name, text) for name, text in zip(named, texts, strict=True)]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The service's decision: ``key`` is the name of the signing key; without ``error`` the request is accepted."""

    key: str = ""
    error: StorageError | None = None

    @property
    def status(self) -> int:
        return 0 if self.error is None else self.error.status

    @property
    def detail(self) -> str:
        return "" if self.error is None else self.error.details.get("AuthenticationErrorDetail", "")


@dataclass(frozen=True, slots=True)
class Report:
    """``account`` is empty if unknown; without ``verdict`` it is not known whether the service accepts the text.

    ``parameters`` belong to a token, ``fields`` to a request, ``settings`` to a connection string; requests and
    connection strings may contain a token.
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
    findings: Sequence[Finding] = ()
    key: str = ""  # the name of the key that signed it, or that a connection string contains

    @property
    def text(self) -> str:
        """The whole signed text."""
        return "\n".join(line.text for line in self.lines)
