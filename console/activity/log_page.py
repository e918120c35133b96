"""One page of what was done in an account: activities, and changes of entities by all others, in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from console.activity.filters import LogQuery, read_position, write_position
from storage.domain.entities.entity import EntityKey
from storage.domain.service.activity import Verb
from storage.models import Account, Activity
from storage.operations import activity, changes
from storage.operations.changes import ChangeEntry

_MOMENT: Final = timedelta(microseconds=1)
_CLOCKS: Final = timedelta(minutes=5)
# their entities are listed with the activity
_OF_ENTITIES: Final = (
    Verb.ENTITY_INSERT,
    Verb.ENTITY_CHANGE,
    Verb.ENTITY_DELETE,
    Verb.ENTITY_REKEY,
    Verb.ENTITY_REVERT,
    Verb.ENTITY_APPLY,
)

Entry = Activity | ChangeEntry


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries, the newest first; ``older`` and ``newer`` are what the addresses of the adjacent pages add."""

    entries: list[Entry]
    older: dict[str, str] | None
    newer: dict[str, str] | None


def time_of(entry: Entry) -> datetime:
    return entry.at if isinstance(entry, Activity) else entry.latest


def read(account: Account, query: LogQuery, top: int) -> LogPage:
    """Raises OperationTimedOut."""
    before, after = read_position(query.before), read_position(query.after)
    if after is not None:
        return _read_newer(account, query, after, top)
    return _read_older(account, query, before, top)


def _read_older(account: Account, query: LogQuery, before: datetime | None, top: int) -> LogPage:
    wanted, chosen = query.to_filter([account.pk]), query.to_changes()
    if before is not None:
        wanted = replace(wanted, until=_earlier(wanted.until, before))
    done, more_done = activity.page_of_time(wanted, top=top)
    written: Sequence[ChangeEntry] = ()
    more_written = False
    if chosen is not None:
        skipped = tuple(query.skip.split(",")) if query.skip else ()
        chosen = replace(chosen, skipped_requests=skipped)
        if before is not None:
            chosen = replace(chosen, until=_earlier(chosen.until, before))
        page = changes.page(account, chosen, top=top)
        written, more_written = page.entries, not page.is_last
    # beyond the last one of either, the other has entries that were not read
    ends = [time_of(entries[-1]) for entries, more in ((done, more_done), (written, more_written)) if more]
    end = max(ends, default=None)
    merged = _merge(account, query, done, written)
    shown = [entry for entry in merged if end is None or time_of(entry) >= end]
    has_older = len(shown) < len(merged) or bool(ends) or len(shown) > top
    if len(shown) > top:
        end = time_of(shown[top - 1])
        shown = [entry for entry in shown if time_of(entry) >= end]
    newer = {"after": write_position(time_of(shown[0]))} if before is not None and shown else None
    if not has_older or end is None:
        return LogPage(shown, None, newer)
    straddling = [it.request for it in written if it.latest >= end and (it.earliest < end or it.is_open)]
    return LogPage(shown, {"before": write_position(end), "skip": ",".join(straddling)}, newer)


def _read_newer(account: Account, query: LogQuery, after: datetime, top: int) -> LogPage:
    wanted, chosen = query.to_filter([account.pk]), query.to_changes()
    start = after + _MOMENT
    wanted = replace(wanted, since=_later(wanted.since, start))
    done, more_done = activity.page_of_time(wanted, top=top, oldest_first=True)
    written: Sequence[ChangeEntry] = ()
    more_written = False
    if chosen is not None:
        chosen = replace(chosen, since=_later(chosen.since, start))
        page = changes.page(account, chosen, top=top, oldest_first=True)
        written, more_written = page.entries, not page.is_last
    ends = [time_of(entries[0]) for entries, more in ((done, more_done), (written, more_written)) if more]
    end = min(ends, default=None)
    merged = _merge(account, query, done, written)
    shown = [entry for entry in merged if end is None or time_of(entry) <= end]
    has_newer = bool(ends) or len(shown) > top
    shown = shown[-top:]
    oldest = time_of(shown[-1]) if shown else start
    newer = {"after": write_position(time_of(shown[0]))} if has_newer and shown else None
    return LogPage(shown, {"before": write_position(oldest)}, newer)


def _merge(
    account: Account, query: LogQuery, done: Sequence[Activity], written: Sequence[ChangeEntry]
) -> list[Entry]:
    """Put both in the order of time, without changes that an activity covers."""
    told: set[str] = set()
    if written:
        # an undo of many does not list its entities by key
        verbs = _OF_ENTITIES[:-1] if query.key else _OF_ENTITIES
        since, until = written[-1].earliest - _CLOCKS, written[0].latest + _CLOCKS
        told = activity.requests_of(account, {it.request for it in written}, verbs, since, until)
    entries: list[Entry] = [*done, *(it for it in written if it.request not in told)]
    return sorted(entries, key=time_of, reverse=True)


def _earlier(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else min(one, other)


def _later(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else max(one, other)


_VERBS: Final = {
    (True, False, False): Verb.ENTITY_INSERT,
    (False, False, True): Verb.ENTITY_DELETE,
}


def as_activity(entry: ChangeEntry, account: Account) -> Activity:
    """Return what is not stored: the activity as which a change would be recorded if the console had made it."""
    kinds = bool(entry.inserted), bool(entry.changed), bool(entry.deleted)
    table = entry.table
    done = Activity(
        verb=_VERBS.get(kinds, Verb.ENTITY_CHANGE),
        at=entry.latest,
        account_id=account.pk,
        account_name=account.name,
        table_name="" if table is None else table.name,
        actor_kind=entry.actor.kind,
        actor=entry.actor.name,
        address=entry.actor.address,
        agent=entry.actor.agent,
        request_id=entry.request,
        detail={"by_token": entry.actor.token},
    )
    done.sas_label = entry.actor.label  # type: ignore[attr-defined]
    done.changed = entry.number  # type: ignore[attr-defined]
    done.first_key = _first_key(entry.key)  # type: ignore[attr-defined]
    done.has_table = table is not None and table.deleted_at is None  # type: ignore[attr-defined]
    return done


def _first_key(key: EntityKey) -> dict[str, str]:
    return {"partition_key": key.partition_key, "row_key": key.row_key}
