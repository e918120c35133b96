"""Observations of a request, for metrics, logs and the use of credentials."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain.access.actor import ActorKind
from storage.domain.access.grants import Operation
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.values.kinds import AccountKind

REFUSALS: Final = (401, 403, 429)  # statuses that tell a caller that it may not do this, or not now
KEY_NAMES: Final = ("key1", "key2")


def retired_key_name(number: int) -> str:
    """Name a replaced key that is still accepted."""
    return f"key{number} (old)"


class Authentication(StrEnum):
    """Method by which a request is authenticated, in the words of Azure's logs."""

    # every request is counted by it, and Enum's own hash is slow Python code
    __hash__ = str.__hash__

    ANONYMOUS = "anonymous"
    KEY = "authenticated"
    SAS = "sas"
    BEARER = "bearer"


ACTORS: Final = {
    Authentication.KEY: ActorKind.KEY,
    Authentication.SAS: ActorKind.SAS,
    Authentication.BEARER: ActorKind.BEARER,
}


class Credential(NamedTuple):
    """The credential that authorized a request."""

    authentication: Authentication
    # the name of an account key, the hexadecimal SHA-256 of a SAS signature, or the subject of a bearer token
    name: str
    parameters: tuple[tuple[str, str], ...] = ()  # the fields of a SAS without its signature


class Rehearsed(NamedTuple):
    """Effect of a rehearsal on a request."""

    rules: tuple[str, ...]
    is_failure: bool = False  # the rehearsal made it fail
    is_withheld: bool = False  # the client got no answer
    is_applied: bool | None = None  # whether a write was committed; None for reads, or if it is not known
    delay: float = 0.0  # seconds before the operation


@dataclass(slots=True)
class ObservedRequest:
    """Observations of a request, filled in during processing; unknown fields keep their defaults."""

    started: float
    account_id: int = 0
    account: str = ""
    kind: AccountKind = AccountKind.STORAGE
    secondary: bool = False
    operation: Operation | None = None
    table: str = ""  # as addressed
    possible_table: str = ""  # as addressed, where it may be something else
    authentication: Authentication = Authentication.ANONYMOUS  # as attempted
    credential: Credential | None = None  # once verified
    address: str = ""  # the client's address
    agent: bytes = b""  # without credentials
    request_id: str = ""
    status: int = 0
    error: str = ""  # the service's code
    ingress: int = 0
    egress: int = 0
    # refusal of the request, or of the first part of a change set that was refused
    refusal: StorageError | None = None
    refused_part: int | None = None  # the position of that part, from zero
    refused_key: EntityKey | None = None  # key of the refused entity, if it is known
    expected: int | None = None  # the Timestamp in ticks that If-Match has asked of it
    query: EntityQuery | None = None
    entities: int = 0  # that the query returned
    warnings: tuple[str, ...] = ()  # rules of Azure that were broken, and that the account does not insist on
    partition: str | None = None  # the PartitionKey of an entity or a change set
    answered: float = 0.0
    sent: float = 0.0
    rehearsed: Rehearsed | None = None  # if a rehearsal changed its course
