"""What stands beside each policy while it is edited: what it allows, when that is, who uses it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.policies.forms import Draft, PolicyDraft, write_time
from console.policies.policy_effects import distance, letters, listed
from storage.domain.access.grants import Operation
from storage.domain.access.policies import PERMISSIONS, AccessPolicy, SignedIdentifier, is_instant
from storage.domain.sas.known import KnownToken

# what each letter is good for, and what two of them are together; a test holds them against the grants
ALLOWS: Final[Mapping[str, Promise]] = {
    "r": gettext_lazy("point reads and queries"),
    "a": gettext_lazy("inserts"),
    "u": gettext_lazy("updates and merges"),
    "d": gettext_lazy("deletes"),
    "au": gettext_lazy("upserts"),
}
OPERATIONS: Final[Mapping[str, tuple[Operation, ...]]] = {
    "r": (Operation.QUERY_ENTITY, Operation.QUERY_ENTITIES),
    "a": (Operation.INSERT_ENTITY,),
    "u": (Operation.UPDATE_ENTITY, Operation.MERGE_ENTITY),
    "d": (Operation.DELETE_ENTITY,),
    "au": (Operation.INSERT_OR_REPLACE_ENTITY, Operation.INSERT_OR_MERGE_ENTITY),
}


@dataclass(frozen=True, slots=True)
class TimeNote:
    """``utc`` is empty for what is no time; ``clock`` is without the date where that is the reader's, too."""

    utc: str
    clock: str
    distance: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A policy of the form; ``last`` says when a token that names it was used."""

    draft: PolicyDraft
    allows: str
    needs_both: bool  # for upserts
    gained: str
    lost: str
    start: TimeNote | None
    expiry: TimeNote | None
    warnings: tuple[str, ...]  # of the Id
    is_backwards: bool  # ends before it starts
    tokens: int
    last: str


def rows(draft: Draft, tokens: Sequence[KnownToken], now: datetime) -> list[Row]:
    read = draft.read(now)
    return [_row(draft, place, read, tokens, now) for place in range(len(read))]


def _row(
    draft: Draft,
    place: int,
    read: Sequence[SignedIdentifier],
    tokens: Iterable[KnownToken],
    now: datetime,
) -> Row:
    row, policy = draft.rows[place], read[place].policy or AccessPolicy()
    former = _former(draft, row)
    using = [token for token in tokens if token.identifier == read[place].identifier]
    last = max((token.last_used for token in using if token.last_used), default=None)
    start, expiry = time_note(policy.start, now), time_note(policy.expiry, now)
    return Row(
        row,
        listed(str(text) for found, text in ALLOWS.items() if set(found) <= row.permissions),
        len(row.permissions & {"a", "u"}) == 1,
        _less(row.permissions, former),
        _less(former, row.permissions),
        start,
        expiry,
        tuple(_warnings(draft, row, read[place].identifier)),
        bool(start and expiry and start.utc and expiry.utc and start.utc >= expiry.utc),
        len(using),
        distance(last, now) if last else "",
    )


def _former(draft: Draft, row: PolicyDraft) -> frozenset[str]:
    """What the policy allows that is stored under this Id; what is new has lost and gained nothing."""
    stored = {it.identifier: it.policy for it in draft.seen}
    own = row.basis.identifier
    if own not in stored or row.read_identifier != own:
        return row.permissions
    return frozenset((stored[own] or AccessPolicy()).permission or "")


def _less(found: Iterable[str], others: Iterable[str]) -> str:
    return letters("".join(letter for letter in PERMISSIONS if letter in found and letter not in others))


def _warnings(draft: Draft, row: PolicyDraft, identifier: str) -> Iterable[str]:
    """What is allowed, and hardly meant."""
    was = row.basis.identifier
    if was and was != identifier and was in {it.identifier for it in draft.seen}:
        yield _("Renaming creates a new policy: tokens that use %(old)s are revoked.") % {"old": was}
    if identifier != identifier.strip():
        yield _("The Id begins or ends with a space.")
    others = [other.identifier for other in draft.rows if other.id != row.id]
    if any(other != identifier and other.casefold() == identifier.casefold() for other in others):
        yield _("Another Id differs only in letter case.")


def renamed(draft: Draft, read: Sequence[SignedIdentifier]) -> dict[str, str]:
    """The new Id by the old one, of what was stored and is not there any more."""
    left = {it.identifier for it in read}
    stored = {it.identifier for it in draft.seen}
    pairs = ((row.basis.identifier, it.identifier) for row, it in zip(draft.rows, read, strict=True))
    return {old: new for old, new in pairs if old in stored and old not in left and new}


def time_note(instant: str | None, now: datetime) -> TimeNote | None:
    """None for nothing, which is left to the tokens."""
    if not instant:
        return None
    if not is_instant(instant):
        return TimeNote("", "", "", is_over=False)
    moment = datetime.fromisoformat(f"{instant[:19]}+00:00")
    fraction = instant[20:27].rstrip("0")
    clock = f"{instant[11:19]}.{fraction}" if fraction else instant[11:19].removesuffix(":00")
    utc = f"{instant[:10]} {clock}"
    is_same_day = write_time(instant, now.tzinfo or UTC).startswith(instant[:10])
    return TimeNote(
        utc, clock if is_same_day else utc, distance(moment, now.astimezone(UTC)), is_over=moment <= now
    )
