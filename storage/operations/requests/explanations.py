"""Why a request was refused or slow: the causes, which each door puts into its own words, and here in plain English."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from storage.domain import errors
from storage.domain.errors import PartKind, StorageError
from storage.domain.filters.access_plan import AccessPath
from storage.domain.filters.parser import parse
from storage.domain.requests.cleaning import LEFT_OUT
from storage.domain.requests.kept_addresses import AddressFault, AddressRule
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.domain.values.stored import read_member
from storage.editing.filters.quick_fixes import diagnose
from storage.inspector import Finding
from storage.inspector.records import load_findings
from storage.inspector.sentences import describe
from storage.models import RecordedRequest
from storage.operations.requests.earlier_changes import TABLE, EarlierChange
from storage.operations.requests.requests import is_slow


class Limit(StrEnum):
    """A limit that a request has exceeded, beside those that the service's own message names."""

    KEY = "key"
    BODY = "body"
    MEMORY = "memory"
    UNITS = "units"
    BUSY = "busy"
    TIME = "time"


LIMITS: Final[Mapping[str, Limit]] = {
    errors.KeyValueTooLarge.__name__: Limit.KEY,
    errors.RequestBodyTooLarge.__name__: Limit.BODY,
    errors.TooManyRequests.__name__: Limit.UNITS,
    errors.ServerBusy.__name__: Limit.BUSY,
    errors.OperationTimedOut.__name__: Limit.TIME,
}
# whose message names the limit
_NAMED_LIMITS: Final = frozenset(
    it.__name__
    for it in (
        errors.EntityTooLarge,
        errors.PropertyNameTooLong,
        errors.PropertyValueTooLarge,
        errors.TooManyProperties,
    )
)


@dataclass(frozen=True, slots=True)
class Place:
    """The operation of a change set that was refused, by its position from zero."""

    index: int


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a request at fault; ``position``: of its first character at fault, from zero."""

    kind: PartKind
    name: str
    position: int | None


@dataclass(frozen=True, slots=True)
class Message:
    """The service's own sentence for the code."""

    text: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The client closed the connection before it was answered."""


@dataclass(frozen=True, slots=True)
class Slow:
    path: AccessPath | None
    candidates: tuple[str, ...]  # properties whose index would have spared it rows


Cause = Finding | AddressFault | Place | Part | Message | Limit | EarlierChange | Closed | Slow

_VALUE: Final = f"'{LEFT_OUT}'"  # a value in the place of one that is not kept
_QUOTED: Final = re.compile("'[^']*'")

_PARTS: Final = {
    PartKind.OPTION: "The query option {name} is at fault",
    PartKind.HEADER: "The header {name} is at fault",
    PartKind.PROPERTY: "The property {name} is at fault",
    PartKind.BODY: "The body cannot be read",
}
_PATHS: Final = {
    AccessPath.POINT: "It read one entity by its keys.",
    AccessPath.RANGE: "It read some rows of one partition.",
    AccessPath.PARTITION_SCAN: "It read a whole partition.",
    AccessPath.PARTITION_RANGE: "It read several partitions.",
    AccessPath.TABLE_SCAN: "It read the whole table.",
}
_RULES: Final = {
    AddressRule.ENCODING: "it is not percent-encoded UTF-8.",
    AddressRule.TABLE_NAME: "no table can have the name in it.",
    AddressRule.KEY: (
        "what is in parentheses is no key. A key is (PartitionKey='…',RowKey='…'), with these quotation marks, and with"
        " reserved characters percent-encoded."
    ),
    AddressRule.DEPTH: "nothing is below a table or an entity.",
}
_LIMITS: Final = {
    Limit.KEY: "A PartitionKey and a RowKey hold at most 1,024 UTF-16 code units each.",
    Limit.BODY: "The body of a request holds at most 4 MiB.",
    Limit.MEMORY: "Large bodies took all the memory that --request-memory allows for them.",
    Limit.UNITS: "The table has used up its request units per second.",
    Limit.BUSY: "The server or its database had no capacity for the request within 20 seconds.",
    Limit.TIME: "The operation took longer than its time limit.",
}


def credential_name(request: RecordedRequest) -> str:
    """Return what people call the credential: key1, the label of a SAS or the start of its fingerprint, a subject."""
    label: str | None = getattr(request, "sas_label", None)
    if request.authentication == Authentication.SAS:
        return label or request.credential[:8]
    return request.credential


def causes(request: RecordedRequest) -> Iterator[Cause]:
    """Yield why it was refused, then why it was slow."""
    yield from load_findings(request.report) if request.report is not None else ()
    fault: dict[str, Any] = request.fault or {}
    if "address" in fault and fault["address"]["rule"] in set(AddressRule):  # else of a newer version
        yield AddressFault(**{**fault["address"], "rule": AddressRule(fault["address"]["rule"])})
    if "place" in fault:
        yield Place(fault["place"])
    if fault.get("part") in set(PartKind):
        yield Part(PartKind(fault["part"]), fault["name"], fault.get("position"))
    if request.error in _NAMED_LIMITS:
        yield Message(message_of(request))
    elif "limit" in fault:
        yield Limit.MEMORY
    elif request.error in LIMITS:
        yield LIMITS[request.error]
    if "change" in fault:
        yield EarlierChange.load(fault["change"])
    if request.outcome == Outcome.FAILED and not request.status:
        yield Closed()
    if is_slow(request):
        path = read_member(AccessPath, request.access_path) if request.access_path else None
        yield Slow(path, tuple(request.candidates or ()))


def correct_filter(request: RecordedRequest) -> str:
    """Return the filter as the editor of queries would correct it, without its values; empty if nothing is known."""
    text = dict(request.options).get("$filter", "").replace(LEFT_OUT, _VALUE)
    try:
        parse(text)
    except StorageError as error:
        for fix in diagnose(text, error, datetime.now(UTC)).fixes:
            corrected = fix.apply(text)
            with suppress(StorageError):
                parse(corrected)
                return _QUOTED.sub(LEFT_OUT, corrected)
    return ""


def message_of(request: RecordedRequest) -> str:
    """Return the service's own sentence for the code."""
    error = getattr(errors, request.error, None) if request.error else None
    return error.message if isinstance(error, type) and issubclass(error, errors.StorageError) else ""


def explain(request: RecordedRequest) -> list[str]:
    """Return sentences: why it was refused, then why it was slow."""
    return [sentence for cause in causes(request) for sentence in _describe(cause)]


def _describe(cause: Cause) -> Iterator[str]:
    match cause:
        case Finding():
            yield describe(cause)
        case AddressFault(rule, segments, length):
            size = (
                f"{segments} segment{'s' if segments != 1 else ''} and {length} characters below the account"
            )
            yield f"The address ({size}) names no resource: {_RULES[rule]}"
        case Place(index):
            yield f"The operation at position {index} of the change set was refused."
        case Part(kind, name, position):
            sentence = _PARTS[kind].format(name=name)
            yield f"{sentence}." if position is None else f"{sentence} at position {position}."
        case Message(text):
            yield text
        case Limit():
            yield _LIMITS[cause]
        case EarlierChange():
            yield _describe_change(cause)
        case Closed():
            yield "The client closed the connection before it was answered."
        case Slow(path, candidates):
            if path is not None:
                yield _PATHS[path]
            if candidates:
                yield f"An index of {' or '.join(candidates)} would spare it rows."


def _describe_change(change: EarlierChange) -> str:
    who = change.actor.short_name or change.actor.kind.value
    address = f" from {change.actor.address}" if change.actor.address else ""
    done = {"delete": "The entity was deleted", TABLE: "The table was deleted"}.get(
        change.op, "The entity was last changed"
    )
    further = ""
    if change.further:
        further = f" It is the last of {change.further + 1} changes that the client had not seen."
    return f"{done} by {who}{address} at {change.at:%Y-%m-%d %H:%M:%S} UTC.{further}"
