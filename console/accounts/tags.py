"""The end of accounts that are made for a while."""

from datetime import datetime

from django import template

from storage.domain.service import lifetimes
from storage.models import Account

register = template.Library()


@register.filter
def purged_at(account: Account) -> datetime | None:
    """When it is deleted; None: it is not frozen by itself, or guarded."""
    if account.frozen_at is None or account.protected or account.read_only:
        return None
    return lifetimes.purge_time(account.frozen_at)
