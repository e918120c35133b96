"""Remaining quotas, for display; each subject enforces its own quota before it creates something."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.db.models import Count, QuerySet

from storage.core.labels import LabelError, check_labels
from storage.core.notices import Found, Look, Severity
from storage.core.quotas import LABELS, Quota
from storage.domain.refusals import Reason, Refused
from storage.models import Account


class QuotaReached(Refused):
    """A quota is used up."""


class Allowance(NamedTuple):
    """Usage of a quota: the number used and the maximum."""

    used: int
    most: int

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.most


def limit(quota: Quota, account: Account | None = None) -> int:
    """Return the quota of the server, or the lower one of an account."""
    most: int = settings.QUOTAS[quota.name]
    own: int | None = getattr(account, quota.setting) if account is not None and quota.has_setting else None
    return most if own is None else min(own, most)


def find_used_up(quota: Quota, counted: QuerySet[Any], look: Look) -> Iterator[Found]:
    """Yield the accounts that have used the configured share of a quota."""
    used = dict(counted.values_list("account_id").annotate(Count("pk")).order_by("account_id"))
    for account in Account.objects.filter(pk__in=used).order_by("pk"):
        most = limit(quota, account)
        if used[account.pk] >= most * look.threshold(account.pk) / 100:
            is_full = used[account.pk] >= most
            yield Found(
                account.pk,
                facts={"used": used[account.pk], "most": most},
                news="full" if is_full else "",
                severity=Severity.ERROR if is_full else None,
            )


def lock_user(pk: int) -> None:
    """Lock a user's row, so that concurrent transactions cannot exceed a quota of this user."""
    apps.get_model(settings.AUTH_USER_MODEL).objects.select_for_update(no_key=True).filter(pk=pk).first()


def check_all_labels(labels: Mapping[str, str]) -> None:
    """Validate the labels of an account; raises LabelError, also for too many."""
    check_labels(labels)
    if len(labels) > limit(LABELS):
        raise LabelError(Reason.TOO_MANY_LABELS, most=limit(LABELS))
