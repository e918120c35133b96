"""Report of an inspection, as codes for which callers have texts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from storage.domain.errors import StorageError
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import ExplainedParameter
from storage.inspector.mistakes import Mistake


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake; ``details`` fill the placeholders of its message and contain no secrets."""

    mistake: Mistake
    details: tuple[tuple[str, str], ...] = ()


def finding(mistake: Mistake, **details: str) -> Finding:
    return Finding(mistake, tuple(details.items()))


def mask(secret: str) -> str:
    """Mask a secret except its last four characters; short secrets completely."""
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
    """A field of a request."""

    name: str
    value: str
    part: FieldKind
    is_signed: bool = False  # the signature covers it


@dataclass(frozen=True, slots=True)
class ConnectionSetting:
    """Setting of a connection string, masked if it is secret."""

    name: str
    value: str
    problem: Finding | None = None


@dataclass(frozen=True, slots=True)
class SignedLine:
    """Line of the string to sign; ``name`` is the field or header that it contains."""

    name: str
    text: str


def name_lines(texts: Sequence[str], names: Sequence[str]) -> list[SignedLine]:
    """Label the lines of the string to sign, unless values contain newlines themselves."""
    named = names if len(texts) == len(names) else [""] * len(texts)
    return [SignedLine(name, text) for name, text in zip(named, texts, strict=True)]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision of the service: ``key`` is the signing key; without ``error`` the request is accepted."""

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
    """Result of an inspection; ``account`` is empty and ``verdict`` None if they cannot be determined.

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

    @property
    def key(self) -> str:
        """Return the name of the signing key, or of the key in a connection string."""
        return self.verdict.key if self.verdict is not None else ""

    @property
    def text(self) -> str:
        """Return the whole string to sign."""
        return "\n".join(line.text for line in self.lines)
