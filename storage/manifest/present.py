"""Manifest of the accounts' present state, without secrets."""

from typing import Any, Final

from django.utils import timezone

from storage.accounts import account_settings
from storage.domain.values.kinds import AccountKind
from storage.manifest import resources
from storage.models import Account
from storage.notices import rules

_NO_FRACTION: Final = ".0000000Z"


def describe(account: Account) -> dict[str, Any]:
    """Return the declaration of an account's present state as JSON."""
    settings = account_settings.to_json(resources.ACCOUNT.stored(account)[""])
    described = {name: value for name, value in settings.items() if value is not None}
    if account.expires_at is not None and account.expires_at <= timezone.now():
        del described["enabled"]  # the end of its lifetime decides, and a new lifetime enables it
    if account.kind == AccountKind.STORAGE:
        described["service_properties"] = _without_nulls(resources.SERVICE_PROPERTIES.stored(account)[""])
    described["members"] = {name: it["role"] for name, it in resources.MEMBER.stored(account).items()}
    changed = {
        str(it.kind): {"enabled": it.is_on, **({} if it.threshold is None else {"threshold": it.threshold})}
        for it in rules.for_account(account)
        if not it.is_default
    }
    if changed:
        described["notice_rules"] = changed
    schedule = resources.SNAPSHOT_SCHEDULE.stored(account)
    if schedule:
        described["snapshot_schedule"] = _without_nulls(schedule[""])
    sets = resources.REHEARSAL_SET.stored(account)
    if sets:
        described["rehearsal_sets"] = {name: dict(fields) for name, fields in sets.items()}
    described["tables"] = _describe_tables(account)
    return described


def _describe_tables(account: Account) -> dict[str, Any]:
    described: dict[str, Any] = {}
    indexes = resources.INDEX.stored_by_table(account)
    policies = resources.POLICIES.stored_by_table(account)
    for name, fields in resources.TABLE.stored(account).items():
        folded = resources.TABLE.identify(AccountKind(account.kind), name)
        described[name] = {
            **{field: value for field, value in fields.items() if field != "throughput" or value},
            "indexes": list(indexes[folded]),
        }
        if account.kind == AccountKind.STORAGE:
            described[name]["policies"] = {
                it: {field: value.replace(_NO_FRACTION, "Z") for field, value in policy.items()}
                for it, policy in policies[folded].items()
            }
    return described


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_nulls(it) for name, it in value.items() if it is not None}
        case list():
            return [_without_nulls(it) for it in value]
    return value
