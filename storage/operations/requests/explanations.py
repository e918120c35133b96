"""Why a request was refused or slow, in plain English; the console has its own words for the same facts."""

from collections.abc import Iterator
from typing import Final

from storage.domain.errors import PartKind
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.requests.recorded import SLOW, Outcome
from storage.inspector.records import load_findings
from storage.inspector.sentences import describe
from storage.models import RecordedRequest

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


def credential_name(request: RecordedRequest) -> str:
    """Return what people call the credential: key1, the label of a SAS or the start of its fingerprint, a subject."""
    label: str | None = getattr(request, "sas_label", None)
    if request.authentication == Authentication.SAS:
        return label or request.credential[:8]
    return request.credential


def explain(request: RecordedRequest) -> list[str]:
    """Return sentences: why it was refused, then why it was slow."""
    return [*_refusal(request), *_slowness(request)]


def _refusal(request: RecordedRequest) -> Iterator[str]:
    findings = load_findings(request.report) if request.report is not None else []
    for found in findings:
        yield describe(found)
    fault = request.fault or {}
    if "place" in fault:
        yield f"The operation at position {fault['place']} of the change set was refused."
    if "part" in fault:
        sentence = _PARTS[PartKind(fault["part"])].format(name=fault["name"])
        yield f"{sentence} at position {fault['position']}." if "position" in fault else f"{sentence}."
    if request.outcome == Outcome.FAILED and not request.status:
        yield "The client closed the connection before it was answered."


def _slowness(request: RecordedRequest) -> Iterator[str]:
    if request.seconds < SLOW:
        return
    if request.access_path:
        yield _PATHS[AccessPath(request.access_path)]
    if request.candidates:
        yield f"An index of {' or '.join(request.candidates)} would spare it rows."
