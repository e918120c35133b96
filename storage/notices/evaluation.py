"""Evaluation of conditions: opens and resolves notices and announces them, in one process of all servers."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from storage.activity.activity import in_json
from storage.core import registry
from storage.core.notices import Found, Look, NoticeKind
from storage.health.machine import machine
from storage.models import Account, Notice
from storage.notices import delivery, rules
from storage.notices.kinds import NEWS_LENGTH, RETENTION_DAYS, NoticeEvent, find_cases
from storage.notices.rules import RuleSet
from storage.sql.attempts import attempting_each

MOST_OPEN: Final = 20  # notices of a kind in an account; the others open when these are resolved
_FORGOTTEN: Final = timedelta(days=1)  # since another machine has found what only it can find
_SUBJECT: Final = 128

_Key = tuple[int | None, int | None, str]  # account, user, subject


def evaluate(now: datetime) -> None:
    """Evaluate all kinds; an error in one changes none of its notices and does not stop the others."""
    rule_set = rules.read_all()
    with attempting_each("Not every condition of a notice could be evaluated") as attempt:
        for kind in registry.notice_kinds().values():
            with attempt():
                _evaluate(kind, rule_set, now)


def evaluate_kind(kind: NoticeKind, now: datetime) -> None:
    """Evaluate one kind of notice, after a change that may affect it."""
    _evaluate(kind, rules.read_all(), now)


@transaction.atomic
def _evaluate(kind: NoticeKind, rule_set: RuleSet, now: datetime) -> None:
    opened = Notice.objects.select_for_update(of=("self",)).filter(kind=kind, resolved_at=None)
    known = list(opened.select_related("account").order_by("pk"))
    # after the notices: one that another process opens meanwhile must not be resolved by an older state
    conditions = {_key_of(it): it for it in _find(kind, rule_set, now)}
    is_open: Counter[tuple[int | None, int | None]] = Counter()
    for notice in known:
        is_now = conditions.pop((notice.account_id, notice.user_id, notice.subject), None)
        if is_now is not None:
            _keep(notice, kind, is_now, now)
        elif _is_over(notice, kind, now):
            _resolve(notice, now)
            continue
        is_open[notice.account_id, notice.user_id] += 1
    accounts = Account.objects.in_bulk({pk for pk, _, _ in conditions if pk is not None})
    for (account_id, user_id, subject), it in conditions.items():
        is_gone = account_id is not None and account_id not in accounts
        if is_gone or is_open[account_id, user_id] >= MOST_OPEN:
            continue
        is_open[account_id, user_id] += 1
        made, is_new = Notice.objects.get_or_create(
            kind=kind,
            account=None if account_id is None else accounts[account_id],
            user_id=user_id,  # type: ignore[misc]  # None: of all
            subject=subject,
            resolved_at=None,
            defaults={
                "severity": it.severity or kind.condition.severity,
                "facts": in_json(it.facts),
                "news": it.news[:NEWS_LENGTH],
                "opened_at": now,
                "news_at": now,
                "found_at": now,
            },
        )
        if is_new:  # another process may have found it at the same moment
            delivery.announce(made, NoticeEvent.OPENED, now)


def _find(kind: NoticeKind, rule_set: RuleSet, now: datetime) -> Iterable[Found]:
    default = 0.0 if kind.condition.threshold is None else kind.condition.threshold.default
    look = Look(now, default, rule_set.thresholds(kind))
    return (it for it in find_cases(kind, look) if rule_set.is_on(kind, it.account_id))


def _key_of(found: Found) -> _Key:
    return found.account_id, found.user_id, found.subject[:_SUBJECT]


def _keep(notice: Notice, kind: NoticeKind, condition: Found, now: datetime) -> None:
    """Update an open notice; it is announced again only if its news changed."""
    has_news = notice.news != condition.news[:NEWS_LENGTH]
    notice.facts = in_json(condition.facts)
    notice.severity = condition.severity or kind.condition.severity
    notice.news, notice.found_at = condition.news[:NEWS_LENGTH], now
    if has_news:
        notice.news_at = now
    notice.save(update_fields=("facts", "severity", "news", "found_at", "news_at"))
    if has_news:
        delivery.announce(notice, NoticeEvent.CHANGED, now)


def _is_over(notice: Notice, kind: NoticeKind, now: datetime) -> bool:
    if kind.condition.is_local and notice.subject != machine():
        return now - notice.found_at > _FORGOTTEN
    # without a calm also if another clock was ahead
    return not kind.condition.calm or now - notice.found_at >= kind.condition.calm


def _resolve(notice: Notice, now: datetime) -> None:
    notice.resolved_at = now
    notice.save(update_fields=("resolved_at",))
    delivery.announce(notice, NoticeEvent.RESOLVED, now)


def tidy(now: datetime) -> None:
    """Delete notices and deliveries beyond their retention."""
    Notice.objects.filter(resolved_at__lt=now - timedelta(days=RETENTION_DAYS)).delete()
    delivery.tidy(now)
