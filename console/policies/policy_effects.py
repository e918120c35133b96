"""What a save of policies does to the tokens that are known, in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from storage.domain import sas
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.sas.known import KnownToken, TokenState
from storage.domain.sas.tokens import AccountSas, TableSas
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.editing.policy_effects import EffectKind, TimeShift, TokenEffect

SHOWN: Final = 50  # lines at most of what changes, and as many of each policy that stays

LETTERS: Final[Mapping[str, Promise]] = {
    "r": gettext_lazy("r Query"),
    "a": gettext_lazy("a Add"),
    "u": gettext_lazy("u Update"),
    "d": gettext_lazy("d Delete"),
}
_ICONS: Final[Mapping[EffectKind, str]] = {
    EffectKind.REVOKED: "circle-off",
    EffectKind.NARROWED: "arrow-down",
    EffectKind.REVIVED: "rotate-ccw",
    EffectKind.WIDENED: "arrow-up",
    EffectKind.UNCHANGED: "check",
}


@dataclass(frozen=True, slots=True)
class Line:
    effect: TokenEffect
    icon: str
    told: tuple[str, ...]

    @property
    def known(self) -> KnownToken:
        return self.effect.known

    @property
    def kind(self) -> str:
        return self.effect.kind.value


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Tokens of one policy to which nothing happens."""

    identifier: str
    lines: tuple[Line, ...]
    number: int


@dataclass(frozen=True, slots=True)
class Preview:
    """``unregistered`` are those among all that were not made here."""

    changed: tuple[Line, ...]
    unchanged: tuple[Unchanged, ...]
    change_count: int
    stay_count: int
    unregistered: int
    revoked: int

    @property
    def hidden_count(self) -> int:
        return self.change_count - len(self.changed)


def preview(
    effects: Sequence[TokenEffect],
    after: Sequence[SignedIdentifier],
    renamed: Mapping[str, str],
    now: datetime,
) -> Preview:
    """``renamed`` has the new Id by the old one."""
    policies = {it.identifier: it.policy for it in after}
    changed = [effect for effect in effects if effect.kind is not EffectKind.UNCHANGED]
    same = [effect for effect in effects if effect.kind is EffectKind.UNCHANGED]
    return Preview(
        tuple(_line(effect, policies, renamed, now) for effect in changed[:SHOWN]),
        tuple(_unchanged(same, policies, renamed, now)),
        len(changed),
        len(same),
        sum(not effect.known.is_registered for effect in effects),
        sum(effect.kind is EffectKind.REVOKED for effect in effects),
    )


def _unchanged(
    same: Iterable[TokenEffect],
    policies: Mapping[str, AccessPolicy | None],
    renamed: Mapping[str, str],
    now: datetime,
) -> Iterable[Unchanged]:
    groups: dict[str, list[TokenEffect]] = {}
    for effect in same:
        groups.setdefault(effect.known.identifier, []).append(effect)
    for identifier, found in groups.items():
        lines = tuple(_line(effect, policies, renamed, now) for effect in found[:SHOWN])
        yield Unchanged(identifier, lines, len(found))


def _line(
    effect: TokenEffect,
    policies: Mapping[str, AccessPolicy | None],
    renamed: Mapping[str, str],
    now: datetime,
) -> Line:
    told = (*_changes(effect, policies, renamed, now), _use(effect.known, now))
    return Line(effect, _ICONS[effect.kind], tuple(filter(None, told)))


def _changes(
    effect: TokenEffect,
    policies: Mapping[str, AccessPolicy | None],
    renamed: Mapping[str, str],
    now: datetime,
) -> list[str]:
    match effect.kind:
        case EffectKind.REVOKED:
            return [_why_revoked(effect, policies, renamed)]
        case EffectKind.REVIVED:
            is_later = effect.after is TokenState.NOT_YET_VALID
            return [_("restored, but not yet valid") if is_later else _("restored: works again")]
        case EffectKind.UNCHANGED:
            return [_unchanged_sentence(effect)]
    return [
        *([_("gains %(permissions)s") % {"permissions": letters(effect.gained)}] if effect.gained else []),
        *([_("loses %(permissions)s") % {"permissions": letters(effect.lost)}] if effect.lost else []),
        *([_start_sentence(effect, effect.start)] if effect.start else []),
        *([_expiry_sentence(effect.expiry)] if effect.expiry else []),
    ]


def letters(found: str) -> str:
    return listed(str(LETTERS[letter]) for letter in found)


def listed(items: Iterable[str]) -> str:
    return pgettext("between the items of a list", ", ").join(items)


def _why_revoked(
    effect: TokenEffect, policies: Mapping[str, AccessPolicy | None], renamed: Mapping[str, str]
) -> str:
    identifier = effect.known.identifier
    match effect.after:
        case TokenState.ORPHANED if identifier in renamed:
            return _("revoked: the policy %(old)s was renamed to %(new)s, and tokens keep the old Id") % {
                "old": identifier,
                "new": renamed[identifier],
            }
        case TokenState.ORPHANED:
            return _("revoked: the policy %(identifier)s no longer exists") % {"identifier": identifier}
        case TokenState.EXPIRED:
            return _("revoked: expired")
        case _:
            return _why_conflicting(effect.known.token, policies.get(identifier))


def _why_conflicting(token: TableSas | AccountSas, policy: AccessPolicy | None) -> str:
    """What both say, else what neither does."""
    names = {"start": _("start"), "expiry": _("expiry"), "permissions": _("permissions")}
    both = [name for name in names if name in sas.fields_set_by(policy) and getattr(token, name)]
    if both:
        terms = listed(names[name] for name in both)
        return _("revoked: the token and its policy would both set %(terms)s") % {"terms": terms}
    return _("revoked: neither the token nor its policy would set an expiry and permissions")


def _unchanged_sentence(effect: TokenEffect) -> str:
    match effect.after:
        case TokenState.ACTIVE | TokenState.EXPIRES_SOON:
            return _("unchanged")
        case TokenState.NOT_YET_VALID:
            return _("unchanged: not yet valid")
        case TokenState.EXPIRED:
            return _("unchanged: expired")
        case TokenState.BLOCKED:
            return _("unchanged: blocked")
        case TokenState.REVOKED:
            return _("unchanged: its key was rotated")
        case TokenState.ORPHANED:
            return _("unchanged: no policy has its Id")
        case TokenState.CONFLICTING:
            return _("unchanged: conflicts with its policy")


def _start_sentence(effect: TokenEffect, shift: TimeShift) -> str:
    if shift.after is None:
        return _("start removed")
    moment = {"time": _clock(shift.after)}
    if effect.is_paused:
        return _("refused until %(time)s") % moment
    return (_("starts later: %(time)s") if shift.is_later else _("starts earlier: %(time)s")) % moment


def _expiry_sentence(shift: TimeShift) -> str:
    moment = {"time": _clock(shift.after or 0)}
    return (_("expires later: %(time)s") if shift.is_later else _("expires earlier: %(time)s")) % moment


def _clock(ticks: int) -> str:
    """By the reader's clock."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ticks // TICKS_PER_SECOND)
        return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")
    except (OverflowError, ValueError):
        return str(ticks)


def _use(known: KnownToken, now: datetime) -> str:
    if known.last_used is None:
        return _("never used")
    if known.uses:
        shown = number_format(known.uses, force_grouping=True)
        text = ngettext("used %(shown)s time in 24 hours", "used %(shown)s times in 24 hours", known.uses)
        return text % {"shown": shown}
    return _("used %(when)s") % {"when": distance(known.last_used, now)}


def distance(moment: datetime, now: datetime) -> str:
    if abs(moment - now) < timedelta(minutes=1):
        return _("just now")
    if moment < now:
        return _("%(time)s ago") % {"time": timesince(moment, now, depth=1)}
    return _("in %(time)s") % {"time": timeuntil(moment, now, depth=2)}


def ordered(tokens: Iterable[KnownToken], identifiers: Sequence[SignedIdentifier]) -> list[KnownToken]:
    """In the order of the policies that they name; those of none come last."""
    places = {it.identifier: place for place, it in reversed([*enumerate(identifiers)])}
    return sorted(tokens, key=lambda token: places.get(token.identifier, len(identifiers)))


def of_table(known: Iterable[KnownToken], folded_name: str) -> list[KnownToken]:
    """Those of a table that name a policy."""
    return [
        it
        for it in known
        if isinstance(it.token, TableSas) and it.token.folded == folded_name and it.identifier
    ]
