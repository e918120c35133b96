"""Notes beside each policy in the editor: its permissions, its times in UTC, and the tokens that use it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.access.policies.drafts import PolicyDraft, SetDraft, show_time
from console.access.policies.effects import join_items, name_permissions
from console.site.times import describe_distance
from storage.domain.access.grants import Operation
from storage.domain.access.policies import PERMISSIONS, AccessPolicy, SignedIdentifier, is_instant
from storage.domain.sas.known import KnownToken

# the operations that each letter allows, and the two that upserts need; a test compares them with the grants
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
    """Note on a time; ``utc`` is empty if invalid, ``clock`` omits a date equal to the local one."""

    utc: str
    clock: str
    distance: str
    is_over: bool


def note_policies(draft: SetDraft, tokens: Sequence[KnownToken], now: datetime) -> list[dict[str, Any]]:
    read = draft.read(now)
    return [
        _note_policy(
            draft, row, identifier, [it for it in tokens if it.identifier == identifier.identifier], now
        )
        for row, identifier in zip(draft.rows, read, strict=True)
    ]


def _note_policy(
    draft: SetDraft, row: PolicyDraft, read: SignedIdentifier, users: Sequence[KnownToken], now: datetime
) -> dict[str, Any]:
    policy, stored = read.policy or AccessPolicy(), _stored_permissions(draft, row)
    start, expiry = _note_time(policy.start, now), _note_time(policy.expiry, now)
    last_used = max((token.last_used for token in users if token.last_used), default=None)
    return {
        "identifier": read.identifier,
        "allows": join_items(
            str(text) for letters, text in ALLOWS.items() if set(letters) <= row.permissions
        ),
        "lacks_upsert": len(row.permissions & {"a", "u"}) == 1,  # an upsert needs both
        "gained": _name_missing(row.permissions, stored),
        "lost": _name_missing(stored, row.permissions),
        "start": start,
        "expiry": expiry,
        "warnings": tuple(_warn_about_id(draft, row, read.identifier)),
        # expires before it starts
        "is_backwards": bool(start and expiry and start.utc and expiry.utc and start.utc >= expiry.utc),
        "tokens": len(users),
        "last_used": describe_distance(last_used, now, past_depth=1) if last_used else "",
    }


def _stored_permissions(draft: SetDraft, row: PolicyDraft) -> frozenset[str]:
    """Return the permissions as stored; a new policy counts as unchanged."""
    stored = {it.identifier: it.policy for it in draft.seen}
    own = row.basis.identifier
    if own not in stored or row.read_identifier != own:
        return row.permissions
    return frozenset((stored[own] or AccessPolicy()).permission or "")


def _name_missing(found: Iterable[str], others: Iterable[str]) -> str:
    """Name the permissions in the first set that the second lacks."""
    return name_permissions(letter for letter in PERMISSIONS if letter in found and letter not in others)


def _warn_about_id(draft: SetDraft, row: PolicyDraft, identifier: str) -> Iterable[str]:
    """Warn about an Id that is valid but probably a mistake."""
    was = row.basis.identifier
    if was and was != identifier and was in {it.identifier for it in draft.seen}:
        yield _("Renaming creates a new policy: tokens that use %(old)s are revoked.") % {"old": was}
    if identifier != identifier.strip():
        yield _("The Id begins or ends with a space.")
    others = [other.identifier for other in draft.rows if other is not row]
    if any(other != identifier and other.casefold() == identifier.casefold() for other in others):
        yield _("Another Id differs only in letter case.")


def find_renamed(draft: SetDraft, read: Sequence[SignedIdentifier]) -> dict[str, str]:
    """Return new Ids by the stored Ids that they replace."""
    left = {it.identifier for it in read}
    stored = {it.identifier for it in draft.seen}
    pairs = ((row.basis.identifier, it.identifier) for row, it in zip(draft.rows, read, strict=True))
    return {old: new for old, new in pairs if old in stored and old not in left and new}


def _note_time(instant: str | None, now: datetime) -> TimeNote | None:
    """Describe a time relative to now; None if the field is blank."""
    if not instant:
        return None
    if not is_instant(instant):
        return TimeNote("", "", "", is_over=False)
    moment = datetime.fromisoformat(f"{instant[:19]}+00:00")
    fraction = instant[20:27].rstrip("0")
    clock = f"{instant[11:19]}.{fraction}" if fraction else instant[11:19].removesuffix(":00")
    utc = f"{instant[:10]} {clock}"
    is_same_day = show_time(instant, now.tzinfo or UTC).startswith(instant[:10])
    return TimeNote(
        utc,
        clock if is_same_day else utc,
        describe_distance(moment, now.astimezone(UTC), past_depth=1),
        is_over=moment <= now,
    )
