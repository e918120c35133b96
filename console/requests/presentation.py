"""How the console shows requests: who made them, why they were refused, and what made them slow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.queries.access_paths import PATHS, PathText
from console.sas import mistakes
from console.site.actors import DOOR_LABELS, draw_actor
from console.site.last_changes import describe_change, describe_deletion
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import PartKind
from storage.domain.filters.access_plan import AccessPath
from storage.domain.requests.kept_addresses import AddressFault, AddressRule
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import Outcome
from storage.domain.service.recorded import Op, RecordedChange
from storage.domain.values.stored import read_member
from storage.domain.values.ticks import to_ticks
from storage.inspector import Finding, Mistake
from storage.models import RecordedRequest
from storage.operations.changes.last_change import TableDeletion
from storage.operations.requests import explanations, requests
from storage.operations.requests.earlier_changes import TABLE, EarlierChange
from storage.operations.requests.explanations import (
    Closed,
    Limit,
    Message,
    Part,
    Place,
    credential_name,
)

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
_RULES: Final[Mapping[AddressRule, Promise]] = {
    AddressRule.ENCODING: gettext_lazy("An address is UTF-8, with reserved characters percent-encoded."),
    AddressRule.TABLE_NAME: gettext_lazy(
        "The name of a table has 3 to 63 letters and digits and starts with a letter."
    ),
    AddressRule.KEY: gettext_lazy(
        "What is in parentheses is no key. A key is (PartitionKey='…',RowKey='…') with straight single quotation marks,"
        " and its reserved characters, such as a slash, are percent-encoded."
    ),
    AddressRule.DEPTH: gettext_lazy("An address ends with the table or the entity."),
}
_LIMITS: Final[Mapping[Limit, Promise]] = {
    Limit.KEY: gettext_lazy("A PartitionKey and a RowKey hold at most 1,024 UTF-16 code units each."),
    Limit.BODY: gettext_lazy("The body of a request holds at most 4 MiB. Split it into several requests."),
    Limit.MEMORY: gettext_lazy(
        "Large bodies took all the memory that the server allows for them (--request-memory)."
    ),
    Limit.UNITS: gettext_lazy("The table has used up its request units per second."),
    Limit.BUSY: gettext_lazy("The server or its database had no capacity for the request within 20 seconds."),
    Limit.TIME: gettext_lazy("The operation took longer than its time limit."),
}


@dataclass(frozen=True)
class RequestView:
    """A request as pages show it."""

    it: RecordedRequest

    @property
    def badge(self) -> str:
        """The kind of the badge of its status."""
        return {Outcome.REFUSED: "warn", Outcome.FAILED: "danger"}.get(
            read_member(Outcome, self.it.outcome), "ok"
        )

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
        """The credential, with the page of a labelled SAS token; nothing if none is known."""
        kind = _ACTORS.get(read_member(Authentication, self.it.authentication))
        if kind is None or not self.it.credential:
            return SafeString("")
        label = getattr(self.it, "sas_label", None) or ""
        return draw_actor(Actor(kind, self.it.credential, label=label), self.it.account.name)

    @property
    def authentication(self) -> str | Promise:
        return AUTHENTICATIONS.get(self.it.authentication, self.it.authentication)

    @property
    def message(self) -> str:
        """The service's own sentence for the code."""
        return explanations.message_of(self.it)

    @cached_property
    def causes(self) -> list[explanations.Cause]:
        """Why it was refused; what is only good to know is left out, if something is wrong."""
        found = list(explanations.causes(self.it))
        notes = [it for it in found if isinstance(it, Finding) and it.mistake in mistakes.NOTES]
        return [it for it in found if it not in notes] or found

    @property
    def reasons(self) -> list[SafeString]:
        """Why it was refused, in sentences."""
        return [sentence for cause in self.causes for sentence in self._describe(cause)]

    def _describe(self, cause: explanations.Cause) -> Iterator[SafeString]:
        match cause:
            case Finding():
                yield self._describe_finding(cause)
            case AddressFault(rule, segments, length):
                size = ngettext(
                    "The address names no resource: %(number)s segment, %(length)s characters after the account.",
                    "The address names no resource: %(number)s segments, %(length)s characters after the account.",
                    segments,
                )
                yield mistakes.fill(size, number=str(segments), length=str(length))
                yield format_html("{}", _RULES[rule])
            case Place(index):
                text = _(
                    "Operation %(number)s of the change set was refused; the others were not made either."
                )
                yield mistakes.fill(text, number=str(index + 1))
            case Part(kind, name, position):
                yield mistakes.fill(str(_PARTS[kind]), name=name)
                if position is not None:
                    text = _("The first character at fault is at position %(number)s.")
                    yield mistakes.fill(text, number=str(position + 1))
                corrected = explanations.correct_filter(self.it) if name == "$filter" else ""
                if corrected:
                    yield mistakes.fill(_("This filter is valid: %(filter)s"), filter=corrected)
            case Message(text):
                yield format_html("{}", text)
            case Limit():
                yield format_html("{}", _LIMITS[cause])
            case EarlierChange():
                yield self._describe_change(cause)
            case Closed():
                yield SafeString(_("The client closed the connection before it was answered."))

    def _describe_finding(self, found: Finding) -> SafeString:
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
        text = _("It is the last of %(number)s changes that the client had not seen.")
        return format_html("{} {}", sentence, mistakes.fill(text, number=str(change.further + 1)))

    @property
    def earlier_change(self) -> EarlierChange | None:
        """What was done before to the entity, if the history has it."""
        found = (it for it in self.causes if isinstance(it, EarlierChange) and it.number)
        return next(found, None)

    @property
    def is_deleted(self) -> bool:
        change = self.earlier_change
        return change is not None and change.op == Op.DELETE.word

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
