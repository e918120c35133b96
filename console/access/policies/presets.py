"""Buttons of the policy editor, which change a draft: add, remove and copy policies, and set common times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.access.policies.drafts import (
    NEW,
    PolicyDraft,
    SetDraft,
    draft_policy,
    draft_set,
)
from storage.domain.access.policies import PERMISSIONS, SignedIdentifier

MINUTE: Final = timedelta(minutes=1)
LAST_MOMENT: Final = time(23, 59, 59)


@dataclass(frozen=True, slots=True)
class Preset:
    """Preset of a time; ``resolve`` takes the user's local time, None leaves the field to each token."""

    name: str
    label: Promise
    resolve: Callable[[datetime], datetime | None]


def _in(length: timedelta) -> Callable[[datetime], datetime]:
    """Return a function that adds a duration to a time, rounding up to the full minute."""
    return lambda now: (now + length).replace(second=0, microsecond=0) + MINUTE


def end_of_quarter(now: datetime) -> datetime:
    quarter_start = date(now.year, 3 * ((now.month - 1) // 3) + 1, 1)
    next_start = (quarter_start + timedelta(days=93)).replace(day=1)
    return end_of(next_start - timedelta(days=1), now)


def end_of(day: date, now: datetime) -> datetime:
    return datetime.combine(day, LAST_MOMENT, now.tzinfo)


STARTS: Final = (
    Preset("none", _("None: set by each token"), lambda now: None),
    Preset("now", _("Now"), lambda now: now.replace(second=0, microsecond=0)),
    Preset(
        "earlier", _("5 minutes ago"), lambda now: now.replace(second=0, microsecond=0) - timedelta(minutes=5)
    ),
)
EXPIRIES: Final = (
    Preset("none", _("None: set by each token"), lambda now: None),
    Preset("1h", _("In 1 hour"), _in(timedelta(hours=1))),
    Preset("1d", _("In 1 day"), _in(timedelta(days=1))),
    Preset("7d", _("In 7 days"), _in(timedelta(days=7))),
    Preset("30d", _("In 30 days"), _in(timedelta(days=30))),
    Preset("quarter", _("End of the quarter"), end_of_quarter),
)
PRESETS: Final[Mapping[str, tuple[Preset, ...]]] = {"start": STARTS, "expiry": EXPIRIES}


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    label: Promise
    identifier: str
    permissions: str
    expiry: str  # the name of a preset


TEMPLATES: Final = (
    Template("partner", _("Read-only partner"), "partner-read", "r", "quarter"),
    Template("device", _("Append-only device"), "device-append", "a", "none"),
    Template("ci", _("CI, full access"), "ci-full", PERMISSIONS, "30d"),
)


def add_policy(draft: SetDraft, template: str = "") -> SetDraft:
    """Add a policy, empty or from a template."""
    row = draft_policy(NEW, ZoneInfo(draft.zone))
    template_policy = next((it for it in TEMPLATES if it.name == template), None)
    if template_policy is not None:
        name = _free_name(draft, template_policy.identifier)
        row = replace(row, identifier=name, permissions=frozenset(template_policy.permissions))
        row = _apply_preset(row, "expiry", template_policy.expiry, draft.now())
    return replace(draft, rows=(*draft.rows, row))


def _free_name(draft: SetDraft, name: str) -> str:
    taken = {row.identifier for row in draft.rows}
    number = 1
    while (candidate := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return candidate


def remove_policy(draft: SetDraft, place: int) -> SetDraft:
    return replace(draft, rows=(*draft.rows[:place], *draft.rows[place + 1 :]))


def copy_policies(draft: SetDraft, identifiers: list[SignedIdentifier]) -> SetDraft:
    """Replace all policies with the policies of another table."""
    return replace(draft, rows=draft_set(identifiers, draft.zone).rows)


def set_preset(draft: SetDraft, place: int, field: str, name: str) -> SetDraft:
    now = draft.now()
    return _change_row(draft, place, lambda row: _apply_preset(row, field, name, now))


def set_last_day(draft: SetDraft, place: int, text: str) -> SetDraft:
    """Set the expiry to the end of a day; an invalid date is kept in the field, which shows the error."""
    try:
        shown = show_moment(end_of(date.fromisoformat(text), draft.now()))
    except ValueError:
        shown = text
    return _change_row(draft, place, lambda row: replace(row, expiry=shown or row.expiry))


def _change_row(draft: SetDraft, place: int, change: Callable[[PolicyDraft], PolicyDraft]) -> SetDraft:
    rows = (change(row) if number == place else row for number, row in enumerate(draft.rows))
    return replace(draft, rows=tuple(rows))


def _apply_preset(row: PolicyDraft, field: str, name: str, now: datetime) -> PolicyDraft:
    preset = next((it for it in PRESETS.get(field, ()) if it.name == name), None)
    if preset is None:
        return row
    moment = preset.resolve(now)
    text = "" if moment is None else show_moment(moment)
    return replace(row, start=text) if field == "start" else replace(row, expiry=text)


def show_moment(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ", "seconds").removesuffix(":00")
