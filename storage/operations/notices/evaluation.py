"""Find what is so now, open and resolve notices, and have people told. One process of all servers does it."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from storage.domain.service.notices import NEWS_LENGTH, RETENTION_DAYS, NoticeEvent, NoticeKind
from storage.models import Account, Notice
from storage.operations.activity.activity import in_json
from storage.operations.activity.attempts import attempting_each
from storage.operations.notices import conditions, delivery, rules
from storage.operations.notices.conditions import CONDITIONS, Condition, Found, Look
from storage.operations.notices.rules import RuleSet

MOST_OPEN: Final = 20  # notices of a kind in an account; the others open when these are resolved
_FORGOTTEN: Final = timedelta(days=1)  # since another machine has found what only it can find
_SUBJECT: Final = 128

_Key = tuple[int | None, int | None, str]  # account, user, subject


def evaluate(now: datetime) -> None:
    """Evaluate all conditions. One that fails changes nothing of its own, and does not stop the others."""
    rule_set = rules.read_all()
    with attempting_each("Not every condition of a notice could be evaluated") as attempt:
        for condition in CONDITIONS.values():
            with attempt():
                _evaluate(condition, rule_set, now)


def evaluate_kind(kind: NoticeKind, now: datetime) -> None:
    """Evaluate one condition, of which something has just changed."""
    _evaluate(CONDITIONS[kind], rules.read_all(), now)


@transaction.atomic
def _evaluate(condition: Condition, rule_set: RuleSet, now: datetime) -> None:
    opened = Notice.objects.select_for_update(of=("self",)).filter(kind=condition.kind, resolved_at=None)
    known = list(opened.select_related("account").order_by("pk"))
    # after the notices: one that another process opens meanwhile must not be resolved by what was so before
    found = {_key_of(it): it for it in _find(condition, rule_set, now)}
    is_open: Counter[tuple[int | None, int | None]] = Counter()
    for notice in known:
        is_now = found.pop((notice.account_id, notice.user_id, notice.subject), None)
        if is_now is not None:
            _keep(notice, condition, is_now, now)
        elif _is_over(notice, condition, now):
            _resolve(notice, now)
            continue
        is_open[notice.account_id, notice.user_id] += 1
    accounts = Account.objects.in_bulk({pk for pk, _, _ in found if pk is not None})
    for (account_id, user_id, subject), it in found.items():
        is_gone = account_id is not None and account_id not in accounts
        if is_gone or is_open[account_id, user_id] >= MOST_OPEN:
            continue
        is_open[account_id, user_id] += 1
        made, is_new = Notice.objects.get_or_create(
            kind=condition.kind,
            account=None if account_id is None else accounts[account_id],
            user_id=user_id,  # type: ignore[misc]  # None: of all
            subject=subject,
            resolved_at=None,
            defaults={
                "severity": it.severity or condition.severity,
                "facts": in_json(it.facts),
                "news": it.news[:NEWS_LENGTH],
                "opened_at": now,
                "news_at": now,
                "found_at": now,
            },
        )
        if is_new:  # another process may have found it at the same moment
            delivery.announce(made, NoticeEvent.OPENED, now)


def _find(condition: Condition, rule_set: RuleSet, now: datetime) -> Iterable[Found]:
    default = 0.0 if condition.threshold is None else condition.threshold.default
    look = Look(now, default, rule_set.thresholds(condition.kind))
    return (it for it in condition.find(look) if rule_set.is_on(condition.kind, it.account_id))


def _key_of(found: Found) -> _Key:
    return found.account_id, found.user_id, found.subject[:_SUBJECT]


def _keep(notice: Notice, condition: Condition, found: Found, now: datetime) -> None:
    """Update a notice; people are told again only if there is news."""
    has_news = notice.news != found.news[:NEWS_LENGTH]
    notice.facts = in_json(found.facts)
    notice.severity = found.severity or condition.severity
    notice.news, notice.found_at = found.news[:NEWS_LENGTH], now
    if has_news:
        notice.news_at = now
    notice.save(update_fields=("facts", "severity", "news", "found_at", "news_at"))
    if has_news:
        delivery.announce(notice, NoticeEvent.CHANGED, now)


def _is_over(notice: Notice, condition: Condition, now: datetime) -> bool:
    if condition.is_local and notice.subject != conditions.machine():
        return now - notice.found_at > _FORGOTTEN
    # without a calm also if another clock was ahead
    return not condition.calm or now - notice.found_at >= condition.calm


def _resolve(notice: Notice, now: datetime) -> None:
    notice.resolved_at = now
    notice.save(update_fields=("resolved_at",))
    delivery.announce(notice, NoticeEvent.RESOLVED, now)


def tidy(now: datetime) -> None:
    """Delete what was resolved, or delivered, long ago."""
    Notice.objects.filter(resolved_at__lt=now - timedelta(days=RETENTION_DAYS)).delete()
    delivery.tidy(now)
