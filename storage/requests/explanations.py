"""Explanations of refused and slow requests: causes, with English sentences that the console translates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from storage.domain import errors
from storage.domain.errors import PartKind
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.kept_addresses import AddressRule
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.domain.requests.strictness import RULES, Evidence, StrictRule
from storage.domain.translation import mark as _
from storage.domain.values.stored import read_member
from storage.inspector import Finding, Mistake
from storage.inspector.records import load_findings
from storage.inspector.reports import finding
from storage.inspector.sentences import Sentence, describe
from storage.models import RecordedRequest
from storage.requests.earlier_changes import TABLE, EarlierChange
from storage.requests.requests import is_rehearsed_failure, is_slow


@dataclass(frozen=True, slots=True)
class Slow:
    path: AccessPath | None
    candidates: tuple[str, ...]  # properties whose index would have spared it rows


Cause = Finding | Sentence | EarlierChange | Slow

_ADDRESS: Final = _(
    "The address names no resource. Segments after the account: %(number)s, characters: %(length)s."
)
_RULES: Final = {
    AddressRule.ENCODING: _("An address is UTF-8, with reserved characters percent-encoded."),
    AddressRule.TABLE_NAME: _("The name of a table has 3 to 63 letters and digits and starts with a letter."),
    AddressRule.KEY: _(
        "What is in parentheses is no key. A key is (PartitionKey='…',RowKey='…') with straight single quotation marks,"
        " and its reserved characters, such as a slash, are percent-encoded."
    ),
    AddressRule.DEPTH: _("An address ends with the table or the entity."),
}
_PLACE: Final = _("Operation %(number)s of the change set was refused; the others were not made either.")
_PARTS: Final = {
    PartKind.OPTION: _("The query option %(name)s is not valid."),
    PartKind.HEADER: _("The header %(name)s is not valid."),
    PartKind.PROPERTY: _("The property %(name)s is not valid."),
    PartKind.BODY: _("The body cannot be read."),
}
_POSITION: Final = _("The error is at position %(number)s.")
_NO_OPTION: Final = _("Table storage doesn't support the query option %(name)s.")
_INSTEAD: Final = {
    "$orderby": _(
        "Entities are sorted by PartitionKey, then RowKey. Sort by other properties in the client."
    ),
    "$skip": _("Read the next page with the continuation token of the one before."),
    "$count": _("Count entities in the client."),
    "$inlinecount": _("Count entities in the client."),
}
_MEMORY: Final = _("Large bodies took all the memory that the server allows for them (--request-memory).")
_LIMITS: Final[Mapping[str, str]] = {
    errors.KeyValueTooLarge.__name__: _(
        "A PartitionKey and a RowKey hold at most 1,024 UTF-16 code units each."
    ),
    errors.RequestBodyTooLarge.__name__: _(
        "The body of a request holds at most 4 MiB. Split it into several requests."
    ),
    errors.TooManyRequests.__name__: _("The table has used up its request units per second."),
    errors.ServerBusy.__name__: _(
        "The server or its database had no capacity for the request within 20 seconds."
    ),
    errors.OperationTimedOut.__name__: _("The operation took longer than its time limit."),
}
# the message of these names the limit
_NAMED_LIMITS: Final = frozenset(
    it.__name__
    for it in (
        errors.EntityTooLarge,
        errors.PropertyNameTooLong,
        errors.PropertyValueTooLarge,
        errors.TooManyProperties,
    )
)
_WARNINGS: Final = {
    Evidence.OBSERVED: _("Azure would refuse this request."),
    Evidence.DOCUMENTED: _("Azure's documentation does not allow this request."),
}
_STRICT: Final = _("This account is as strict as Azure, which refuses such requests.")
_SOURCE: Final = _("Source: %(source)s")
_REHEARSED_FAILURE: Final = _("The rehearsal made this request fail: %(rules)s.")
_REHEARSED: Final = _("The rehearsal changed how this request was answered: %(rules)s.")
_COMMITTED: Final = _("The write was committed, but the client was not told.")
_NOT_COMMITTED: Final = _("The write was not committed.")
_DELAYED: Final = _("It waited %(milliseconds)s ms first, which are not part of its duration.")
_CLOSED: Final = _("The client closed the connection before it was answered.")
_EXPIRED: Final = _("The token %(token)s expired %(seconds)s before this request, at %(moment)s.")
FURTHER: Final = _("It is the last of %(number)s changes that the client had not seen.")
_PATHS: Final = {
    AccessPath.POINT: "It read one entity by its keys.",
    AccessPath.RANGE: "It read some rows of one partition.",
    AccessPath.PARTITION_SCAN: "It read a whole partition.",
    AccessPath.PARTITION_RANGE: "It read several partitions.",
    AccessPath.TABLE_SCAN: "It read the whole table.",
}


def credential_name(request: RecordedRequest) -> str:
    """Return the display name of the credential: key1, the label or fingerprint of a SAS, or a subject."""
    label: str | None = getattr(request, "sas_label", None)
    if request.authentication == Authentication.SAS:
        return label or request.credential[:8]
    return request.credential


def causes(request: RecordedRequest) -> Iterator[Cause]:
    """Yield effects of a rehearsal, the causes of a refusal, what Azure would refuse, then the causes of slowness."""
    rehearsed = (request.fault or {}).get("rehearsed")
    if rehearsed is not None:
        yield _describe_rehearsed(rehearsed)
    if not is_rehearsed_failure(request):
        yield from load_findings(request.report) if request.report is not None else ()
        yield from _find_faults(request, request.fault or {})
        if request.outcome == Outcome.FAILED and not request.status:
            yield Sentence(_CLOSED)
    for rule in warnings_of(request):
        yield _describe_rule(_WARNINGS[RULES[rule].evidence], rule)
    if is_slow(request):
        path = read_member(AccessPath, request.access_path) if request.access_path else None
        yield Slow(path, tuple(request.candidates or ()))


def _describe_rehearsed(rehearsed: Mapping[str, Any]) -> Sentence:
    opening, more = _REHEARSED, []
    if rehearsed["failure"]:
        opening = _REHEARSED_FAILURE
        if rehearsed["applied"] is not None:
            more.append(Sentence(_COMMITTED if rehearsed["applied"] else _NOT_COMMITTED))
    if rehearsed["delay"]:
        more.append(Sentence(_DELAYED, {"milliseconds": f"{1000 * rehearsed['delay']:.0f}"}))
    return Sentence(opening, {"rules": ", ".join(rehearsed["rules"])}, tuple(more))


def _find_faults(request: RecordedRequest, fault: dict[str, Any]) -> Iterator[Cause]:
    address = fault.get("address", {})
    if address.get("rule") in set(AddressRule):  # else of a newer version
        details = {"number": str(address["segments"]), "length": str(address["length"])}
        yield Sentence(_ADDRESS, details)
        yield Sentence(_RULES[AddressRule(address["rule"])])
    if "place" in fault:
        yield Sentence(_PLACE, {"number": str(fault["place"] + 1)})
    if fault.get("rule") in set(StrictRule):
        yield _describe_rule(_STRICT, StrictRule(fault["rule"]))
    elif fault.get("part") in set(PartKind):
        yield _describe_part(request, fault)
    if "similar" in fault:
        yield finding(Mistake.TABLE_MISSING, table=request.table_name, similar=fault["similar"])
    if request.error in _NAMED_LIMITS:
        yield Sentence(message_of(request).replace("%", "%%"))
    elif "limit" in fault:
        yield Sentence(_MEMORY)
    elif request.error in _LIMITS:
        yield Sentence(_LIMITS[request.error])
    if "change" in fault:
        yield EarlierChange.load(fault["change"])


def _describe_part(request: RecordedRequest, fault: Mapping[str, Any]) -> Finding | Sentence:
    """Return what is wrong with a part of a request: of a filter what the console's filter line would say."""
    if "filter" in fault:
        return finding(Mistake.FILTER, **fault["filter"])
    kind, details = PartKind(fault["part"]), {"name": fault["name"]}
    if kind is PartKind.OPTION and request.error == errors.NotImplemented.__name__:
        instead = _INSTEAD.get(fault["name"].lower())
        return Sentence(_NO_OPTION, details, (Sentence(instead),) if instead else ())
    position = fault.get("position")
    more = () if position is None else (Sentence(_POSITION, {"number": str(position + 1)}),)
    return Sentence(_PARTS[kind], details, more)


def _describe_rule(opening: str, rule: StrictRule) -> Sentence:
    facts = RULES[rule]
    return Sentence(opening, more=(Sentence(facts.sentence), Sentence(_SOURCE, {"source": facts.source})))


def warnings_of(request: RecordedRequest) -> list[StrictRule]:
    """Return the rules of Azure that a request broke and that its account did not insist on."""
    names = (request.fault or {}).get("warnings", ())
    return [StrictRule(name) for name in names if name in set(StrictRule)]  # else of a newer version


def describe_cause(request: RecordedRequest, cause: Finding | Sentence) -> Sentence:
    if isinstance(cause, Sentence):
        return cause
    details = dict(cause.details)
    if cause.mistake is Mistake.EXPIRED and "seconds" in details:
        return Sentence(_EXPIRED, {**details, "token": credential_name(request)})
    return describe(cause)


def message_of(request: RecordedRequest) -> str:
    """Return the service's own message for the error code."""
    error = getattr(errors, request.error, None) if request.error else None
    return error.message if isinstance(error, type) and issubclass(error, errors.StorageError) else ""


def explain(request: RecordedRequest) -> list[str]:
    """Return sentences that explain a refusal, then slowness."""
    return [sentence for cause in causes(request) for sentence in _describe(request, cause)]


def _describe(request: RecordedRequest, cause: Cause) -> Iterator[str]:
    match cause:
        case EarlierChange():
            yield _describe_change(cause)
        case Slow(path, candidates):
            if path is not None:
                yield _PATHS[path]
            if candidates:
                yield f"An index of {' or '.join(candidates)} would spare it rows."
        case _:
            yield str(describe_cause(request, cause))


def _describe_change(change: EarlierChange) -> str:
    who = change.actor.short_name or change.actor.kind.value
    address = f" from {change.actor.address}" if change.actor.address else ""
    done = {"delete": "The entity was deleted", TABLE: "The table was deleted"}.get(
        change.op, "The entity was last changed"
    )
    further = ""
    if change.further:
        further = f" {Sentence(FURTHER, {'number': str(change.further + 1)})}"
    return f"{done} by {who}{address} at {change.at:%Y-%m-%d %H:%M:%S} UTC.{further}"
