"""What the buttons of the policy editor do to a draft: rows come and go, times of everyday use, templates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.policies.forms import NOTHING, Draft, PolicyDraft, write_row
from storage.domain.access.policies import PERMISSIONS, SignedIdentifier

MINUTE: Final = timedelta(minutes=1)
LAST_MOMENT: Final = time(23, 59, 59)  # of a day


@dataclass(frozen=True, slots=True)
class Preset:
    """``of`` gives a time from now, by the clock of who asks; None leaves it to the tokens."""

    name: str
    label: Promise
    of: Callable[[datetime], datetime | None]


def _in(length: timedelta) -> Callable[[datetime], datetime]:
    """To the next full minute."""
    return lambda now: (now + length).replace(second=0, microsecond=0) + MINUTE


def _end_of_quarter(now: datetime) -> datetime:
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
    Preset("quarter", _("End of the quarter"), _end_of_quarter),
)
PRESETS: Final[Mapping[str, tuple[Preset, ...]]] = {"start": STARTS, "expiry": EXPIRIES}


@dataclass(frozen=True, slots=True)
class Template:
    """``expiry`` is the name of a preset."""

    name: str
    label: Promise
    identifier: str
    permissions: str
    expiry: str


TEMPLATES: Final = (
    Template("partner", _("Read-only partner"), "partner-read", "r", "quarter"),
    Template("device", _("Append-only device"), "device-append", "a", "none"),
    Template("ci", _("CI, full access"), "ci-full", PERMISSIONS, "30d"),
)


def added(draft: Draft, template: str = "") -> Draft:
    """With one more policy, an empty one if no template of this name is there."""
    row = write_row(_free_id(draft), NOTHING, ZoneInfo(draft.zone))
    found = next((it for it in TEMPLATES if it.name == template), None)
    if found is not None:
        name = _free_name(draft, found.identifier)
        row = replace(row, identifier=name, permissions=frozenset(found.permissions))
        row = _at(row, "expiry", found.expiry, draft.now())
    return replace(draft, rows=(*draft.rows, row))


def _free_id(draft: Draft) -> str:
    return f"p{1 + max((int(row.id[1:]) for row in draft.rows), default=-1)}"


def _free_name(draft: Draft, name: str) -> str:
    taken = {row.identifier for row in draft.rows}
    number = 1
    while (found := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return found


def removed(draft: Draft, id_: str) -> Draft:
    return replace(draft, rows=tuple(row for row in draft.rows if row.id != id_))


def copied(draft: Draft, identifiers: list[SignedIdentifier]) -> Draft:
    """Those of another table take the place of all."""
    start, zone = int(_free_id(draft)[1:]), ZoneInfo(draft.zone)
    rows = tuple(write_row(f"p{start + place}", it, zone) for place, it in enumerate(identifiers))
    return replace(draft, rows=rows)


def preset(draft: Draft, id_: str, field: str, name: str) -> Draft:
    now = draft.now()
    return _with_row(draft, id_, lambda row: _at(row, field, name, now))


def dated(draft: Draft, id_: str, text: str) -> Draft:
    """To expire with the end of a day; a text that is none changes nothing."""
    try:
        moment = end_of(date.fromisoformat(text), draft.now())
    except ValueError:
        return draft
    return _with_row(draft, id_, lambda row: replace(row, expiry=_text(moment)))


def _with_row(draft: Draft, id_: str, change: Callable[[PolicyDraft], PolicyDraft]) -> Draft:
    return replace(draft, rows=tuple(change(row) if row.id == id_ else row for row in draft.rows))


def _at(row: PolicyDraft, field: str, name: str, now: datetime) -> PolicyDraft:
    found = next((it for it in PRESETS.get(field, ()) if it.name == name), None)
    if found is None:
        return row
    moment = found.of(now)
    text = "" if moment is None else _text(moment)
    return replace(row, start=text) if field == "start" else replace(row, expiry=text)


def _text(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat(" ", "seconds")
    return text.removesuffix(":00")
