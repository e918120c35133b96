"""How the console shows requests: who made them, why they were refused, and what made them slow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.queries.access_paths import PATHS, PathText
from console.sas import mistakes
from console.site.actors import DOOR_LABELS, draw_actor
from storage.domain import errors
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.errors import PartKind, StorageError
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.observed import Authentication
from storage.domain.requests.recorded import Outcome
from storage.inspector import Finding, Mistake
from storage.inspector.records import load_findings
from storage.models import RecordedRequest
from storage.operations.requests import requests
from storage.operations.requests.explanations import credential_name

_ACTORS: Final = {
    Authentication.KEY: ActorKind.KEY,
    Authentication.SAS: ActorKind.SAS,
    Authentication.BEARER: ActorKind.BEARER,
}
AUTHENTICATIONS: Final[Mapping[str, str | Promise]] = {
    **{authentication: DOOR_LABELS[kind] for authentication, kind in _ACTORS.items()},
    Authentication.ANONYMOUS: gettext_lazy("anonymous"),
}
_PARTS: Final[Mapping[PartKind, Promise]] = {
    PartKind.OPTION: gettext_lazy("The query option %(name)s is at fault."),
    PartKind.HEADER: gettext_lazy("The header %(name)s is at fault."),
    PartKind.PROPERTY: gettext_lazy("The property %(name)s is at fault."),
    PartKind.BODY: gettext_lazy("The body cannot be read."),
}


@dataclass(frozen=True)
class RequestView:
    """A request as pages show it."""

    it: RecordedRequest

    @property
    def badge(self) -> str:
        """The kind of the badge of its status."""
        return {Outcome.REFUSED: "warn", Outcome.FAILED: "danger"}.get(Outcome(self.it.outcome), "ok")

    @property
    def milliseconds(self) -> float:
        return 1000 * self.it.seconds

    @property
    def is_slow(self) -> bool:
        return requests.is_slow(self.it)

    @property
    def path_text(self) -> PathText | None:
        return PATHS[AccessPath(self.it.access_path)] if self.it.access_path else None

    @property
    def caller(self) -> SafeString:
        """The credential, with the page of a labelled SAS token; nothing if none is known."""
        kind = _ACTORS.get(Authentication(self.it.authentication))
        if kind is None or not self.it.credential:
            return SafeString("")
        label = getattr(self.it, "sas_label", None) or ""
        return draw_actor(Actor(kind, self.it.credential, label=label), self.it.account.name)

    @property
    def authentication(self) -> str | Promise:
        return AUTHENTICATIONS[self.it.authentication]

    @property
    def message(self) -> str:
        """The service's own sentence for the code."""
        error = getattr(errors, self.it.error, None) if self.it.error else None
        return error.message if isinstance(error, type) and issubclass(error, StorageError) else ""

    @property
    def reasons(self) -> list[SafeString]:
        """Why it was refused, in sentences."""
        found = load_findings(self.it.report) if self.it.report is not None else []
        wrong = [it for it in found if it.mistake not in mistakes.NOTES] or found
        return [*map(self._describe, wrong), *self._faults()]

    def _describe(self, found: Finding) -> SafeString:
        details = dict(found.details)
        if found.mistake is not Mistake.EXPIRED or "seconds" not in details:
            return mistakes.describe_finding(found)
        text = _("The token %(token)s expired %(duration)s before this request, at %(moment)s.")
        return mistakes.fill(
            text,
            token=credential_name(self.it),
            duration=mistakes.describe_duration(details["seconds"]),
            moment=details["moment"],
        )

    def _faults(self) -> Iterator[SafeString]:
        fault = self.it.fault or {}
        if "place" in fault:
            text = _("Operation %(number)s of the change set was refused; the others were not made either.")
            yield mistakes.fill(text, number=str(fault["place"] + 1))
        if "part" in fault:
            yield mistakes.fill(str(_PARTS[PartKind(fault["part"])]), name=fault["name"])
        if "position" in fault:
            text = _("The first character at fault is at position %(number)s.")
            yield mistakes.fill(text, number=str(fault["position"] + 1))
        if not self.it.status:
            yield SafeString(_("The client closed the connection before it was answered."))

    @property
    def options(self) -> list[tuple[str, SafeString | str]]:
        """Names and values of the query string, with the place of a fault marked in the filter."""
        span = (self.it.fault or {}).get("span")
        return [
            (name, _mark(value, *span) if span and name == "$filter" else value)
            for name, value in self.it.options
        ]

    @property
    def missing_indexes(self) -> list[str]:
        return requests.missing_indexes(self.it)


def _mark(text: str, start: int, end: int) -> SafeString:
    return format_html("{}<mark>{}</mark>{}", text[:start], text[start:end] or "␣", text[end:])
