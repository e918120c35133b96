"""Recorded changes of entities, property by property."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.grid import differences
from console.grid.differences import MOST, EntityDifference
from storage.models import Account, Activity, Table
from storage.operations import accounts, changes, tables
from storage.operations.changes import ChangeFilter

_CLOCKS = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class RecordedDifference:
    """``number`` is that of the change."""

    number: int
    difference: EntityDifference


def read(account: Account, table: Table, wanted: ChangeFilter) -> tuple[Sequence[RecordedDifference], bool]:
    """Return the first changes, and whether there are more."""
    found = changes.with_images(account, table, wanted, MOST + 1)
    return [
        RecordedDifference(number, differences.compare_entities(*it))
        for number, it in list(found.items())[:MOST]
    ], len(found) > MOST


def reverted(done: Activity) -> tuple[list[EntityDifference], int]:
    """Return the first entities that an activity wrote which history alone has, and the number of all others."""
    account = accounts.by_number(done.account_id or 0)
    number = int(done.detail.get("rows", 0))
    if account is None:
        return [], number
    wanted = ChangeFilter(
        requests=(done.request_id,),
        since=datetime.fromisoformat(done.detail["began"]) - _CLOCKS,
        until=done.at + _CLOCKS,
    )
    found: list[EntityDifference] = []
    for table_id in changes.count_by_table(account, wanted):
        table = tables.by_number(table_id)
        if table is not None and len(found) < MOST:
            found += [it.difference for it in read(account, table, wanted)[0]]
    return found[:MOST], max(0, number - len(found[:MOST]))
