"""Changed entities by property."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from console.grid.differences import MOST, EntityDifference, compare_entities
from storage.activity import activity
from storage.domain.entities.entity import EntityKey
from storage.domain.history.recorded import Op, RecordedChange
from storage.entities.subject import EntityVerb
from storage.history import changes
from storage.history.changes import ChangeFilter
from storage.models import Account, Activity, Table

_KINDS = {
    EntityVerb.INSERT: "added",
    EntityVerb.DELETE: "removed",
    Op.INSERT: "added",
    Op.DELETE: "removed",
}

# limits of a page with more than one entity
_PROPERTIES: Final = 1_000
_CHARACTERS: Final = 1_000_000  # the JSON of all entities, before and after


def of_request(account: Account, table: Table, wanted: ChangeFilter) -> tuple[list[EntityDifference], bool]:
    """Return the first changes of a request to a table, and whether there are more."""
    found = changes.with_images(account, table, wanted, MOST + 1)
    shown = _page_of(found[:MOST])
    return shown, len(found) > len(shown)


def of_activity(done: Activity) -> tuple[list[EntityDifference], int]:
    """Return the first changed entities of an activity, and the number of the others."""
    rows = int(done.detail.get("rows", 0)) if "began" in done.detail else activity.count_changes(done)
    shown = _page_of(changes.made_by(done, MOST))
    if not shown:
        kind = _KINDS.get(done.effective_verb, "changed")
        shown = [_without_images(key, kind) for key in activity.keys_of(done)[:MOST]]
    return shown, max(0, rows - len(shown))


def _page_of(recorded: Iterable[RecordedChange]) -> list[EntityDifference]:
    """Compare the first changes, as many as fit on a page."""
    shown: list[EntityDifference] = []
    properties = characters = 0
    for change in recorded:
        compared = _compare(change)
        properties += len(compared.differences)
        characters += len(compared.before) + len(compared.after)
        if shown and (properties > _PROPERTIES or characters > _CHARACTERS):
            break
        shown.append(compared)
    return shown


def _compare(change: RecordedChange) -> EntityDifference:
    if change.after is None and change.op is not Op.DELETE:  # the table is dropped
        return _without_images(change.key, _KINDS.get(change.op, "changed"))
    compared = compare_entities(change.key, change.before, change.after)
    return replace(compared, sequence=change.sequence)


def _without_images(key: EntityKey, kind: str) -> EntityDifference:
    return EntityDifference(key, kind, (), 0, "", "")
