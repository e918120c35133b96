"""Logged requests for display: caller, reasons of refusal and slowness."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from console.queries.access_paths import PATHS, PathText
from console.site.actors import DOOR_LABELS, draw_actor
from console.site.last_changes import describe_change, describe_deletion
from console.site.sentences import translate
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey
from storage.domain.filters.access_plan import AccessPath
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.requests.observed import ACTORS, Authentication
from storage.domain.requests.outcomes import Outcome
from storage.domain.requests.strictness import StrictRule
from storage.domain.values.stored import read_member
from storage.domain.values.ticks import to_ticks
from storage.history.last_change import TableDeletion
from storage.inspector import Finding
from storage.inspector.mistakes import NOTES
from storage.inspector.sentences import Sentence
from storage.models import RecordedRequest
from storage.requests import explanations, requests
from storage.requests.earlier_changes import TABLE, EarlierChange
from storage.requests.explanations import Slow

AUTHENTICATIONS: Final[Mapping[str, str | Promise]] = {
    **{authentication: DOOR_LABELS[kind] for authentication, kind in ACTORS.items()},
    Authentication.ANONYMOUS: gettext_lazy("anonymous"),
}


@dataclass(frozen=True)
class RequestView:
    """Logged request for display."""

    it: RecordedRequest

    @property
    def badge(self) -> str:
        """Return the badge kind of the status."""
        usual = "warn" if self.warnings else "ok"
        return {Outcome.REFUSED: "warn", Outcome.FAILED: "danger"}.get(
            read_member(Outcome, self.it.outcome), usual
        )

    @property
    def warnings(self) -> list[StrictRule]:
        """Return the rules of Azure that the request broke."""
        return explanations.warnings_of(self.it)

    @property
    def rehearsed(self) -> list[str]:
        """Return the names of the rules of a rehearsal that had an effect."""
        names: list[str] = (self.it.fault or {}).get("rehearsed", {}).get("rules", [])
        return names

    @property
    def milliseconds(self) -> float:
        return 1000 * self.it.seconds

    @property
    def is_today(self) -> bool:
        return timezone.localdate(self.it.at) == timezone.localdate()

    @property
    def is_slow(self) -> bool:
        return requests.is_slow(self.it)

    @property
    def path_text(self) -> PathText | None:
        return PATHS.get(read_member(AccessPath, self.it.access_path))

    @property
    def caller(self) -> SafeString:
        """Render the credential, linking a labelled SAS token; empty if unknown."""
        kind = ACTORS.get(read_member(Authentication, self.it.authentication))
        if kind is None or not self.it.credential:
            return SafeString("")
        label = getattr(self.it, "sas_label", None) or ""
        return draw_actor(Actor(kind, self.it.credential, label=label), self.it.account.name)

    @property
    def authentication(self) -> str | Promise:
        return AUTHENTICATIONS.get(self.it.authentication, self.it.authentication)

    @property
    def message(self) -> str:
        """Return the service's own message for the error code."""
        return explanations.message_of(self.it)

    @cached_property
    def causes(self) -> list[explanations.Cause]:
        """Return the causes of a refusal or slowness; mere notes only if there is nothing else."""
        found = list(explanations.causes(self.it))
        notes = [it for it in found if isinstance(it, Finding) and it.mistake in NOTES]
        return [it for it in found if it not in notes] or found

    @property
    def reasons(self) -> list[SafeString]:
        """Return sentences that explain the refusal."""
        return [self._describe(cause) for cause in self.causes if not isinstance(cause, Slow)]

    def _describe(self, cause: Finding | Sentence | EarlierChange) -> SafeString:
        if isinstance(cause, EarlierChange):
            return self._describe_change(cause)
        return translate(explanations.describe_cause(self.it, cause))

    def _describe_change(self, change: EarlierChange) -> SafeString:
        account = self.it.account.name
        if change.op == TABLE:
            deletion = TableDeletion(self.it.table_name, change.at, change.actor, None)
            return describe_deletion(deletion, account)
        ticks, op = to_ticks(change.at), Op[change.op.upper()]
        sentence = describe_change(
            RecordedChange(
                change.number, op, "", 0, EntityKey("", ""), ticks, change.actor, before=None, after=None
            ),
            account,
        )
        if not change.further:
            return sentence
        further = Sentence(explanations.FURTHER, {"number": str(change.further + 1)})
        return format_html("{} {}", sentence, translate(further))

    @property
    def earlier_change(self) -> EarlierChange | None:
        """Return the earlier change of the entity, if in the history; None otherwise."""
        found = (it for it in self.causes if isinstance(it, EarlierChange) and it.number)
        return next(found, None)

    @property
    def is_deleted(self) -> bool:
        change = self.earlier_change
        return change is not None and change.op == Op.DELETE.word

    @property
    def marked_filter(self) -> SafeString | str:
        """Return the filter with its fault marked; empty if it has none."""
        span = (self.it.fault or {}).get("span")
        return _mark(dict(self.it.options).get("$filter", ""), *span) if span else ""

    @property
    def missing_indexes(self) -> list[str]:
        return requests.missing_indexes(self.it)


def _mark(text: str, start: int, end: int) -> SafeString:
    return format_html("{}<mark>{}</mark>{}", text[:start], text[start:end] or "␣", text[end:])
