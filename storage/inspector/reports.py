"""What is told of a pasted text: its fields, the text that its signature covers, and why it would be refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.explain import Explained
from storage.inspector.findings import Found
from storage.inspector.judging import Verdict


class Kind(StrEnum):
    TOKEN = "token"  # noqa: S105
    REQUEST = "request"
    CONNECTION = "connection"


class Part(StrEnum):
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
class Field:
    """Of a request; ``is_signed``: whether the signature covers it."""

    name: str
    value: str
    part: Part
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """Of a connection string, as it may be shown."""

    name: str
    value: str
    problem: Found | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Of the text that is signed; ``name``: the field or header that it holds."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """``account`` is empty where it could not be told; without ``verdict`` nobody here can say whether it is accepted.

    ``parameters`` are of a token, ``fields`` of a request, ``settings`` of a connection string; a request may come
    with a token, a connection string may hold one.
    """

    kind: Kind
    account: str = ""
    is_managed: bool = False
    parameters: Sequence[Explained] = ()
    fields: Sequence[Field] = ()
    settings: Sequence[Setting] = ()
    lines: Sequence[Line] = ()
    token: TableSas | AccountSas | None = field(default=None, repr=False)
    verdict: Verdict | None = None
    found: Sequence[Found] = ()
    key: str = ""  # the name of the one that signed it, or that a connection string holds

    @property
    def text(self) -> str:
        """The whole text that is signed."""
        return "\n".join(line.text for line in self.lines)


Details = Mapping[str, str]
