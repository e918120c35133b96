"""Undo of changes to access policies and SAS tokens."""

from storage.access import policies, sas
from storage.access.sas import SasDescription
from storage.activity.undoing import check_first, find_account, find_table
from storage.domain.access.actor import Actor
from storage.models import Activity


def undo_policies(done: Activity, by: Actor) -> Activity | None:
    table = find_table(done)
    check_first(done)
    return policies.replace(table, policies.read(done.before or []), by=by, undoes=done)


def undo_description(done: Activity, by: Actor) -> Activity | None:
    check_first(done)
    before = None if done.before is None else SasDescription(**done.before)
    return sas.describe(find_account(done), done.detail["fingerprint"], before, by=by, undoes=done)


def undo_block(done: Activity, by: Actor) -> Activity | None:
    check_first(done)
    blocked = bool((done.before or {}).get("blocked"))
    return sas.set_blocked(
        find_account(done), done.detail["fingerprint"], blocked=blocked, by=by, undoes=done
    )
