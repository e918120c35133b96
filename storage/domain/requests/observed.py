"""A request as those see it who count: for metrics, logs, and who used which key or token when."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain.access.grants import Operation

KEY_NAMES: Final = ("key1", "key2")


def retired_key_name(number: int) -> str:
    """Of a key that was replaced and is still accepted."""
    return f"key{number} (old)"


class Authentication(StrEnum):
    """How a caller proves who it is, by the words of the service's logs."""

    # every request is counted by it, and Enum's own hash is Python code
    __hash__ = str.__hash__

    ANONYMOUS = "anonymous"
    KEY = "authenticated"
    SAS = "sas"
    BEARER = "bearer"


class Credential(NamedTuple):
    """What a request was authorized with.

    ``name``: that of an account key; of a shared access signature the SHA-256 of its signature in hexadecimal; of a
    bearer token its subject. ``parameters`` are the fields of a shared access signature but for the signature itself.
    """

    authentication: Authentication
    name: str
    parameters: tuple[tuple[str, str], ...] = ()


class ObservedOperation(NamedTuple):
    """One operation of a change set; ``key`` is its entity as `/account/table(…)`."""

    operation: Operation | None
    status: int
    error: str
    key: str


@dataclass(slots=True)
class ObservedRequest:
    """Filled in while the request is read; what never became known stays as it is here.

    Times are seconds of time.perf_counter, sizes bytes; ``sent`` is when the answer had been handed to the
    connection, ``answered`` when it was ready.
    """

    started: float
    account_id: int = 0
    account: str = ""
    secondary: bool = False
    operation: Operation | None = None
    table: str = ""  # as addressed
    authentication: Authentication = Authentication.ANONYMOUS  # as it was tried
    credential: Credential | None = None  # once it is proven
    address: str = ""  # of the client
    port: int = 0
    agent: bytes = b""
    request_id: str = ""
    status: int = 0
    error: str = ""  # the service's code
    ingress: int = 0
    egress: int = 0
    parts: Sequence[ObservedOperation] = ()  # of a change set, if it is logged
    answered: float = 0.0
    sent: float = 0.0
