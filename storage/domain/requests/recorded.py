"""Records of requests in the request log."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from storage.domain.entities.entity import EntityKey
from storage.domain.errors import PartKind, RequestMemoryFull, RequestPart, StorageError
from storage.domain.requests.cleaning import clean_option_name, clean_property
from storage.domain.requests.kept_addresses import AddressFault
from storage.domain.requests.observed import ObservedRequest, Rehearsed
from storage.domain.requests.outcomes import Outcome, outcome_of_status

_SPAN_PARTS: Final = (PartKind.OPTION, PartKind.BODY)  # parts in which a fault can have a position
_NAME_LIMIT: Final = 64  # characters


class RequestLogSettings(NamedTuple):
    """Settings that select the requests to log."""

    slow: float = 0.5
    keep: timedelta = timedelta(days=7)
    rows: int = 50_000
    sample: int = 5


class SentRequest(NamedTuple):
    """Request as it arrived, secrets included; held in memory until it is explained, never stored."""

    method: str
    path: bytes
    query: bytes
    headers: Mapping[bytes, bytes]
    scheme: str
    client: str

    @property
    def size(self) -> int:
        """Return the approximate size in bytes."""
        names_and_values = sum(len(name) + len(value) for name, value in self.headers.items())
        return len(self.path) + len(self.query) + names_and_values


class Fault(NamedTuple):
    """Fault that caused the refusal of a request."""

    code: str
    status: int
    part: RequestPart | None = None
    span: tuple[int, int] | None = None  # the characters at fault of an option or the body
    place: int | None = None  # position in a change set, from zero
    hint: str = ""  # tells refusals with the same code apart
    # as in ObservedRequest; not kept, because they contain what the client has sent
    key: EntityKey | None = None
    expected: int | None = None
    limit: str = ""  # set if too much was asked of the server
    rule: str = ""  # rule of Azure, if the account insists on it


def read_fault(observed: ObservedRequest) -> Fault | None:
    """Return the fault of a request, detached from the error, which would keep the request in memory."""
    error = observed.refusal
    if error is None:
        return None
    part = error.part or _named_part(error)
    span = error.span if part is not None and part.kind in _SPAN_PARTS else None
    hint = error.details.get("AuthenticationErrorDetail", "")[:_NAME_LIMIT]
    place, key, expected = observed.refused_part, observed.refused_key, observed.expected
    limit = type(error).__name__ if isinstance(error, RequestMemoryFull) else ""
    return Fault(error.code, error.status, part, span, place, hint, key, expected, limit, error.rule)


def _named_part(error: StorageError) -> RequestPart | None:
    """Return the part named in the service's response."""
    for kind, detail in ((PartKind.HEADER, "HeaderName"), (PartKind.OPTION, "QueryParameterName")):
        if detail in error.details:
            return RequestPart(kind, error.details[detail])
    return None


def outcome_of(status: int, fault: Fault | None) -> Outcome:
    """Return the outcome of a request; a refused change set answered 202 counts as refused."""
    return outcome_of_status(status if fault is None or status >= 400 else fault.status)


def dump_fault(
    fault: Fault | None,
    span: tuple[int, int] | None,
    address: AddressFault | None = None,
    warnings: Sequence[str] = (),
    rehearsed: Rehearsed | None = None,
) -> dict[str, Any] | None:
    """Serialize the loggable details of a fault; ``span`` is its position in the redacted filter, if any."""
    kept: dict[str, Any] = {"warnings": list(warnings)} if warnings else {}
    if rehearsed is not None:
        kept["rehearsed"] = {
            "rules": list(rehearsed.rules),
            "failure": rehearsed.is_failure,
            "applied": rehearsed.is_applied,
            "delay": rehearsed.delay,
        }
    if address is not None:
        kept["address"] = {
            "rule": address.rule.value,
            "segments": address.segments,
            "length": address.length,
        }
    if fault is None:
        return kept or None
    if fault.part is not None:
        kept |= {"part": fault.part.kind.value, "name": _clean_name(fault.part)}
    if fault.span is not None:
        kept["position"] = fault.span[0]
    if span is not None:
        kept["span"] = list(span)
    if fault.place is not None:
        kept["place"] = fault.place
    if fault.limit:
        kept["limit"] = fault.limit
    if fault.rule:
        kept["rule"] = fault.rule
    return kept or None


def _clean_name(part: RequestPart) -> str:
    """Return the redacted name of a request part; header names are kept, as the service only reads known ones."""
    match part.kind:
        case PartKind.OPTION:
            return clean_option_name(part.name)
        case PartKind.PROPERTY:
            return clean_property(part.name)[:_NAME_LIMIT]
        case _:
            return part.name


class KeptRequest(NamedTuple):
    """Finished request that awaits logging."""

    observed: ObservedRequest
    sent: SentRequest
    fault: Fault | None
