"""Effects of changed policies on tokens that reference them, computed by the authorization code."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from storage.domain.access.policies import PERMISSIONS, AccessPolicy, SignedIdentifier
from storage.domain.sas.known import ACCEPTED_STATES, KnownToken, TokenState, terms_of, token_state
from storage.domain.sas.terms import validity_period

_USABLE: Final = ACCEPTED_STATES | {TokenState.NOT_YET_VALID}  # now or later


class EffectKind(StrEnum):
    """Most severe effect on a token, worst first."""

    REVOKED = "revoked"
    NARROWED = "narrowed"
    REVIVED = "revived"
    WIDENED = "widened"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class TimeShift:
    """A changed start or expiry in ticks since 1970; a start of None is unbounded."""

    before: int | None
    after: int | None

    @property
    def is_later(self) -> bool:
        return (self.after is not None) and (self.before is None or self.after > self.before)


@dataclass(frozen=True, slots=True)
class TokenEffect:
    """Effect of a policy change on one token; gained and lost permissions and times only if it is usable throughout."""

    known: KnownToken
    before: TokenState
    after: TokenState
    gained: str = ""
    lost: str = ""
    start: TimeShift | None = None
    expiry: TimeShift | None = None

    @property
    def kind(self) -> EffectKind:
        was, will_be = self.before in _USABLE, self.after in _USABLE
        if was is not will_be:
            return EffectKind.REVIVED if will_be else EffectKind.REVOKED
        if self.lost or (self.start and self.start.is_later) or (self.expiry and not self.expiry.is_later):
            return EffectKind.NARROWED
        return EffectKind.WIDENED if self.gained or self.start or self.expiry else EffectKind.UNCHANGED

    @property
    def is_paused(self) -> bool:
        """Return whether the token works now, but after the change not before its new start."""
        return self.before in ACCEPTED_STATES and self.after is TokenState.NOT_YET_VALID


def predict_effects(
    before: Sequence[SignedIdentifier],
    after: Sequence[SignedIdentifier],
    tokens: Iterable[KnownToken],
    now: datetime,
) -> list[TokenEffect]:
    """Predict the effects on the tokens of one table that reference a policy, worst first."""
    effects = [
        _effect(known, _by_identifier(before), _by_identifier(after), now)
        for known in tokens
        if known.identifier
    ]
    return sorted(effects, key=lambda effect: list(EffectKind).index(effect.kind))


def _effect(
    known: KnownToken, before: Mapping[str, AccessPolicy], after: Mapping[str, AccessPolicy], now: datetime
) -> TokenEffect:
    table = known.table.lower()
    was, will_be = token_state(known, {table: before}, now), token_state(known, {table: after}, now)
    old, new = terms_of(known.token, {table: before}), terms_of(known.token, {table: after})
    if was not in _USABLE or will_be not in _USABLE or old is None or new is None:
        return TokenEffect(known, was, will_be)
    starts, expiries = zip(validity_period(old), validity_period(new), strict=True)
    return TokenEffect(
        known,
        was,
        will_be,
        gained=_less(new.permission, old.permission),
        lost=_less(old.permission, new.permission),
        start=_shift(*starts),
        expiry=_shift(*expiries),
    )


def _by_identifier(identifiers: Sequence[SignedIdentifier]) -> dict[str, AccessPolicy]:
    return {identifier.identifier: identifier.policy or AccessPolicy() for identifier in identifiers}


def _less(letters: str | None, others: str | None) -> str:
    return "".join(
        letter for letter in PERMISSIONS if letter in (letters or "") and letter not in (others or "")
    )


def _shift(before: int | None, after: int | None) -> TimeShift | None:
    return None if before == after else TimeShift(before, after)
