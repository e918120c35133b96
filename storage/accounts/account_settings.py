"""Changing the settings of an account."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from storage.accounts import quotas
from storage.accounts.locking import lock_by_name
from storage.accounts.refusals import AccountError, AccountExpired, busy
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.core import registry
from storage.core.account_settings import SETTINGS
from storage.core.subject import Hook
from storage.domain.access.actor import SERVER, Actor
from storage.domain.access.addresses import Network, read_network
from storage.domain.refusals import Reason, Refused
from storage.jobs import jobs
from storage.models import Account, Activity
from storage.relations import history, snapshot_copies

_IN_CATALOGS: Final = frozenset(name for name, setting in SETTINGS.items() if setting.is_in_catalog)


def change(
    account: Account, *, by: Actor = SERVER, undoes: Activity | None = None, **fields: object
) -> Activity | None:
    """Change settings of an account; return None if nothing changed."""
    check(fields)
    if fields.get("history_days") == 0:
        snapshot_copies.copy_outstanding(account)  # before the lock, so that no request waits for it
    with invalidating_catalogs() if _IN_CATALOGS & fields.keys() else transaction.atomic():
        stored = lock_by_name(account.name)
        if jobs.of_whole_account(stored) is not None:
            raise busy(account.name)
        before = {field: getattr(stored, field) for field in fields}
        if undoes is not None and to_json(before) != undoes.after:
            raise activity.ChangedSince
        for field, value in fields.items():
            setattr(stored, field, value)
        changed = [field for field, value in before.items() if value != fields[field]]
        if not changed:
            return None
        require_lifetime(stored, fields)
        if stored.frozen_at is not None and not _has_passed(stored.expires_at):
            stored.frozen_at = None
            stored.enabled = True
        stored.save(update_fields=(*changed, "enabled", "frozen_at"))
        if "history_days" in changed:
            _switch_history(stored)
        done = activity.record(
            AccountVerb.CHANGE,
            by,
            account=stored,
            before=to_json({field: before[field] for field in changed}),
            after=to_json({field: fields[field] for field in changed}),
            undoes=undoes,
        )
    for field in (*changed, "enabled", "frozen_at"):
        setattr(account, field, getattr(stored, field))
    return done


def _switch_history(account: Account) -> None:
    if not account.history_days:
        snapshot_copies.copy_outstanding(account)
        history.end(account)
    elif not history.is_available():
        raise AccountError(Reason.HISTORY_NEEDS_POSTGRESQL_18)
    elif not history.is_recorded(account):
        history.start(account)


def require_lifetime(account: Account, fields: Mapping[str, Any]) -> None:
    """Raise AccountExpired if the fields enable an expired account without a new lifetime."""
    if fields.get("enabled") and _has_passed(fields.get("expires_at", account.expires_at)):
        raise AccountExpired(Reason.ACCOUNT_EXPIRED, account=account.name)


def _has_passed(end: datetime | None) -> bool:
    return end is not None and end <= timezone.now()


def check(fields: Mapping[str, object]) -> None:
    """Raise AccountError for a value that a setting does not accept."""
    try:
        for name, value in fields.items():
            SETTINGS[name].check(value)
            if isinstance(value, dict):
                quotas.check_all_labels(value)
    except Refused as refused:
        raise AccountError(refused.refusal) from None
    for form in registry.relation_forms():
        if form.unavailable is None or not fields.get(form.account_column):
            continue
        if not any(can() for can in registry.hooks(Hook.SPREADS_TABLES)):
            raise AccountError(form.unavailable)


def to_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings to JSON for the activity log."""
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in fields.items()
    }


def from_json(written: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings from the activity log's JSON."""
    return {
        name: datetime.fromisoformat(value) if value and SETTINGS[name].type is datetime else value
        for name, value in written.items()
    }


def networks_of(account: Account) -> tuple[Network, ...]:
    return tuple(network for network in map(read_network, account.networks) if network is not None)
