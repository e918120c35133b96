"""Changed entities, property by property."""

from console.grid.differences import MOST, EntityDifference, compare_entities
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, Table
from storage.operations.activity import activity
from storage.operations.changes import changes
from storage.operations.changes.changes import ChangeFilter


def read(
    account: Account, table: Table, wanted: ChangeFilter
) -> tuple[list[tuple[int, EntityDifference]], bool]:
    """Return the first changes with their numbers, and whether there are more."""
    found = changes.with_images(account, table, wanted, MOST + 1)
    shown = [(number, compare_entities(*it)) for number, it in found.items()]
    return shown[:MOST], len(found) > MOST


def of_activity(done: Activity) -> tuple[list[EntityDifference], int]:
    """Return the first entities that an activity changed, and the number of all others."""
    if done.effective_verb in (Verb.ENTITY_REVERT, Verb.ENTITY_APPLY) and done.request_id:
        found, number = changes.made_by(done, MOST), int(done.detail.get("rows", 0))
    else:
        found, number = activity.changes_of(done, top=MOST), getattr(done, "changed", 0)
    return [compare_entities(*it) for it in found], max(0, number - len(found))
