"""Undo of changes to the settings and service properties of an account."""

from storage.accounts import account_settings, service_properties
from storage.activity.undoing import check_first, find_account
from storage.domain.access.actor import Actor
from storage.models import Activity


def undo_properties(done: Activity, by: Actor) -> Activity | None:
    account = find_account(done)
    check_first(done)
    before = service_properties.read(done.before)
    return service_properties.replace(account, lambda _: before, by=by, undoes=done)


def undo_account_change(done: Activity, by: Actor) -> Activity | None:
    account = find_account(done)
    check_first(done)
    before = account_settings.from_json(done.before or {})
    return account_settings.change(account, by=by, undoes=done, **before)
