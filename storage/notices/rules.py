"""Rules of notices: enabled kinds per account, and their thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from storage.accounts import locking
from storage.activity import activity
from storage.core.notices import NoticeKind
from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason, Refused
from storage.models import Account, Activity, NoticeRule
from storage.notices.kinds import kinds_of, kinds_of_accounts
from storage.notices.subject import NoticeVerb


class RuleError(Refused):
    """A rule has an invalid value."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Effective rule of a notice kind for an account or the server."""

    kind: NoticeKind
    is_on: bool = True
    threshold: float | None = None

    @property
    def is_default(self) -> bool:
        bounds = self.kind.condition.threshold
        return self.is_on and self.threshold == (None if bounds is None else bounds.default)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules that differ from the defaults, by kind and account."""

    found: Mapping[tuple[str, int | None], NoticeRule]

    def is_on(self, kind: NoticeKind, account_id: int | None) -> bool:
        rule = self.found.get((kind, account_id))
        return rule is None or rule.is_on

    def thresholds(self, kind: NoticeKind) -> dict[int | None, float]:
        return {
            account_id: rule.threshold
            for (of, account_id), rule in self.found.items()
            if of == kind and rule.threshold is not None
        }


def read_all() -> RuleSet:
    return RuleSet({(rule.kind, rule.account_id): rule for rule in NoticeRule.objects.all()})


def for_account(account: Account | None) -> list[Rule]:
    stored = {rule.kind: rule for rule in NoticeRule.objects.filter(account=account)}
    return [_rule(kind, stored.get(kind)) for kind in kinds_of(account)]


def of_new_account() -> list[Rule]:
    return [_rule(kind, None) for kind in kinds_of_accounts()]


def _rule(kind: NoticeKind, stored: NoticeRule | None) -> Rule:
    bounds = kind.condition.threshold
    default = None if bounds is None else bounds.default
    if stored is None:
        return Rule(kind, threshold=default)
    return Rule(kind, stored.is_on, default if stored.threshold is None else stored.threshold)


def find(account: Account | None, kind: str) -> Rule | None:
    return next((rule for rule in for_account(account) if rule.kind == kind), None)


def check(kind: NoticeKind, threshold: float | None) -> None:
    """Raise RuleError for a threshold out of range, or one that the kind does not have."""
    if threshold is None:
        return
    bounds = kind.condition.threshold
    if bounds is None:
        raise RuleError(Reason.NO_NOTICE_THRESHOLD, kind=str(kind))
    if not bounds.least <= threshold <= bounds.most:
        raise RuleError(
            Reason.NOTICE_THRESHOLD, kind=str(kind), least=f"{bounds.least:g}", most=f"{bounds.most:g}"
        )


@transaction.atomic
def change(
    account: Account | None, kind: NoticeKind, *, is_on: bool, threshold: float | None, by: Actor
) -> Activity | None:
    """Set whether a kind is on and its threshold, None for the default; return None if nothing changed."""
    if account is not None:
        locking.lock(account)
    former = find(account, kind)
    if former is None:
        raise RuleError(Reason.NO_NOTICE_KIND, kind=str(kind))
    check(former.kind, threshold)
    bounds = former.kind.condition.threshold
    new_threshold = threshold if threshold is not None or bounds is None else bounds.default
    if (former.is_on, former.threshold) == (is_on, new_threshold):
        return None
    NoticeRule.objects.update_or_create(
        account=account, kind=kind, defaults={"is_on": is_on, "threshold": threshold}
    )
    return activity.record(
        NoticeVerb.RULE,
        by,
        account=account,
        detail={"notice": str(kind)},
        before={"is_on": former.is_on, "threshold": former.threshold},
        after={"is_on": is_on, "threshold": new_threshold},
    )
