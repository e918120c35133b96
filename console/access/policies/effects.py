"""Descriptions of the impact of changed policies on each known token."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from console.site.times import describe_distance, to_local
from storage.domain import sas
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.sas.known import ACCEPTED_STATES, KnownToken, TokenState
from storage.domain.sas.tokens import AccountSas, TableSas
from storage.domain.values.ticks import to_second
from storage.editing.policy_effects import EffectKind, TimeShift, TokenEffect

_SHOWN: Final = 50  # affected tokens, and unaffected ones of each policy

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
_UNCHANGED: Final[Mapping[TokenState, Promise]] = {
    TokenState.ACTIVE: gettext_lazy("unchanged"),
    TokenState.EXPIRES_SOON: gettext_lazy("unchanged"),
    TokenState.NOT_YET_VALID: gettext_lazy("unchanged: not yet valid"),
    TokenState.EXPIRED: gettext_lazy("still expired"),
    TokenState.BLOCKED: gettext_lazy("still blocked"),
    TokenState.REVOKED: gettext_lazy("still revoked: its key was rotated"),
    TokenState.ORPHANED: gettext_lazy("still revoked: no policy has its Id"),
    TokenState.CONFLICTING: gettext_lazy("still refused: conflicts with its policy"),
}
_WORKING: Final = ACCEPTED_STATES | {TokenState.NOT_YET_VALID}
_REFUSED_ICON: Final = "circle-off"


Lines = Sequence[Mapping[str, Any]]  # about one token each


@dataclass(frozen=True, slots=True)
class UnchangedGroup:
    """Tokens of one policy not affected by a change: still working, or still refused."""

    identifier: str
    is_working: bool
    lines: Lines
    count: int


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of a change's effects; only the first tokens have lines."""

    changed: Lines
    unchanged: Sequence[UnchangedGroup]
    change_count: int
    stay_count: int
    unregistered: int  # created elsewhere
    revoked: int

    @property
    def hidden_count(self) -> int:
        return self.change_count - len(self.changed)


@dataclass(frozen=True, slots=True)
class Narrator:
    """Describer of a change's effects on tokens; ``renamed`` maps old Ids to new ones."""

    policies: Mapping[str, AccessPolicy | None]
    renamed: Mapping[str, str]
    now: datetime

    def preview(self, effects: Sequence[TokenEffect]) -> Preview:
        changed = [effect for effect in effects if effect.kind is not EffectKind.UNCHANGED]
        unchanged: dict[tuple[str, bool], list[TokenEffect]] = {}
        for effect in effects:
            if effect.kind is EffectKind.UNCHANGED:
                group = effect.known.identifier, effect.after in _WORKING
                unchanged.setdefault(group, []).append(effect)
        return Preview(
            self._lines(changed),
            [UnchangedGroup(*group, self._lines(those), len(those)) for group, those in unchanged.items()],
            len(changed),
            len(effects) - len(changed),
            sum(not effect.known.is_registered for effect in effects),
            sum(effect.kind is EffectKind.REVOKED for effect in effects),
        )

    def _lines(self, effects: Sequence[TokenEffect]) -> Lines:
        return [
            {
                "known": effect.known,
                "kind": effect.kind.value,
                "icon": _icon(effect),
                "texts": (*self._describe(effect), _describe_use(effect.known, self.now)),
            }
            for effect in effects[:_SHOWN]
        ]

    def _describe(self, effect: TokenEffect) -> Iterable[str]:
        match effect.kind:
            case EffectKind.REVOKED:
                yield self._why_revoked(effect)
            case EffectKind.REVIVED:
                is_later = effect.after is TokenState.NOT_YET_VALID
                yield _("restored, but not yet valid") if is_later else _("restored: works again")
            case EffectKind.UNCHANGED:
                yield str(_UNCHANGED[effect.after])
            case EffectKind.NARROWED | EffectKind.WIDENED:
                yield from _describe_shifts(effect)

    def _why_revoked(self, effect: TokenEffect) -> str:
        identifier = effect.known.identifier
        match effect.after:
            case TokenState.ORPHANED if identifier in self.renamed:
                names = {"old": identifier, "new": self.renamed[identifier]}
                return (
                    _("revoked: the policy %(old)s was renamed to %(new)s, and tokens keep the old Id")
                    % names
                )
            case TokenState.ORPHANED:
                return _("revoked: the policy %(identifier)s no longer exists") % {"identifier": identifier}
            case TokenState.EXPIRED:
                return _("revoked: expired")
        return _why_conflicting(effect.known.token, self.policies.get(identifier))


def _icon(effect: TokenEffect) -> str:
    is_refused = effect.kind is EffectKind.UNCHANGED and effect.after not in _WORKING
    return _REFUSED_ICON if is_refused else _ICONS[effect.kind]


def name_permissions(letters: Iterable[str]) -> str:
    return join_items(str(LETTERS[letter]) for letter in letters)


def join_items(items: Iterable[str]) -> str:
    return pgettext("between the items of a list", ", ").join(items)


def _why_conflicting(token: TableSas | AccountSas, policy: AccessPolicy | None) -> str:
    """Name the terms that the token and its policy both set, or the ones that neither sets."""
    names = {"start": _("start"), "expiry": _("expiry"), "permissions": _("permissions")}
    both = [name for name in names if name in sas.fields_set_by(policy) and getattr(token, name)]
    if both:
        terms = join_items(names[name] for name in both)
        return _("revoked: the token and its policy would both set %(terms)s") % {"terms": terms}
    return _("revoked: neither the token nor its policy would set an expiry and permissions")


def _describe_shifts(effect: TokenEffect) -> Iterable[str]:
    if effect.gained:
        yield _("gains %(permissions)s") % {"permissions": name_permissions(effect.gained)}
    if effect.lost:
        yield _("loses %(permissions)s") % {"permissions": name_permissions(effect.lost)}
    if effect.start:
        yield _start_sentence(effect, effect.start)
    if effect.expiry:
        yield _expiry_sentence(effect.expiry)


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
    """Format ticks in the user's time zone."""
    moment = to_second(ticks)
    if moment is None:
        return str(ticks)
    return to_local(moment).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def _describe_use(known: KnownToken, now: datetime) -> str:
    if known.last_used is None:
        return _("never used")
    if known.uses:
        shown = number_format(known.uses, force_grouping=True)
        text = ngettext("used %(shown)s time in 24 hours", "used %(shown)s times in 24 hours", known.uses)
        return text % {"shown": shown}
    return _("used %(when)s") % {"when": describe_distance(known.last_used, now, past_depth=1)}


def order_tokens(tokens: Iterable[KnownToken], identifiers: Sequence[SignedIdentifier]) -> list[KnownToken]:
    """Sort tokens by the policy they use, unknown policies last."""
    places = {it.identifier: place for place, it in reversed([*enumerate(identifiers)])}
    return sorted(tokens, key=lambda token: places.get(token.identifier, len(identifiers)))


def tokens_of_table(known: Iterable[KnownToken], folded_name: str) -> list[KnownToken]:
    """Return the tokens of a table that use a policy."""
    return [
        it
        for it in known
        if isinstance(it.token, TableSas) and it.token.folded == folded_name and it.identifier
    ]
