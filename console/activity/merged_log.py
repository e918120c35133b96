"""Activity log page that merges activities with an account's other changes of entities, by time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from console.activity.filters import ActivityQuery, read_position, write_position
from console.activity.runs import Entry, runs_of
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.core import registry
from storage.domain.history.recorded import ChangePage
from storage.domain.values.ticks import to_datetime
from storage.entities.subject import EntityVerb
from storage.history import changes
from storage.history.changes import ChangeEntry, ChangeFilter
from storage.models import Account, Activity

_MOMENT: Final = timedelta(microseconds=1)
_MINUTE: Final = timedelta(minutes=1)
_CLOCKS: Final = timedelta(minutes=5)
_LINES: Final = 25  # a page has at least as many, if the log has them
_READS: Final = 4  # further ones for a page of few lines
_MOST: Final = 200  # activities of a minute that are on one page
Wanted = TypeVar("Wanted", ActivityFilter, ChangeFilter)


@dataclass(frozen=True, slots=True)
class LogPage:
    """Page of entries, newest first; ``older`` and ``newer`` are query parts of the adjacent pages."""

    entries: list[Entry]
    older: dict[str, str] | None
    newer: dict[str, str] | None


def time_of(entry: Entry) -> datetime:
    return entry.at if isinstance(entry, Activity) else entry.latest


def read(account: Account | None, query: ActivityQuery, top: int) -> LogPage:
    """Return a page of the log of an account or the server; raises OperationTimedOut.

    Where runs of ``top`` entries are few lines, more entries are read.
    """
    before, after = read_position(query.before), read_position(query.after)
    if after is not None:
        return _read_newer(account, query, after, top)
    page = _read_older(account, query, before, top)
    for _more in range(_READS):
        if page.older is None or _count_lines(page.entries) >= _LINES:
            break
        rest = _read_older(account, query, read_position(page.older["before"]), top)
        page = LogPage([*page.entries, *rest.entries], rest.older, page.newer)
    return page


def _count_lines(entries: Sequence[Entry]) -> int:
    return sum(len(members) if joined is None else 1 for joined, _requests, members in runs_of(entries))


def _read_older(account: Account | None, query: ActivityQuery, before: datetime | None, top: int) -> LogPage:
    condition, chosen = _filters(account, query)
    done = activity.page(_within(condition, None, before), top=top)
    written = _changes(account, chosen, before=before, top=top)
    # beyond the last one of either, the other has entries that were not read
    ends = [done.activities[-1].at] if done.older is not None else []
    if written.next is not None:
        ends.append(to_datetime(written.next))
    end = max(ends, default=None)
    merged = _merge(condition, done.activities, written.entries)
    shown = [entry for entry in merged if end is None or time_of(entry) >= end]
    if len(shown) > top:
        end = time_of(shown[top - 1])
    if end is not None and written.entries:
        # requests of a minute may be one entry, so that no minute is divided, unless it has too many activities
        start = minute_of(end) if written.next is None else max(minute_of(end), to_datetime(written.next))
        rest = activity.page(_within(condition, start, end), top=_MOST)
        if start < end and rest.older is None:
            end = start
            merged = _merge(condition, _both(done.activities, rest.activities), written.entries)
    shown = [entry for entry in merged if end is None or time_of(entry) >= end]
    has_older = len(shown) < len(merged) or bool(ends)
    newer = {"after": write_position(time_of(shown[0]))} if before is not None and shown else None
    older = {"before": write_position(end)} if has_older and end is not None else None
    return LogPage(shown, older, newer)


def _read_newer(account: Account | None, query: ActivityQuery, after: datetime, top: int) -> LogPage:
    start = after + _MOMENT
    condition, chosen = _filters(account, query)
    done = activity.page(_within(condition, start, None), top=top, oldest_first=True)
    written = _changes(account, chosen, after=start, top=top)
    ends = [done.activities[0].at] if done.older is not None else []
    if written.next is not None:
        ends.append(to_datetime(written.next))
    end = min(ends, default=None)
    merged = _merge(condition, done.activities, written.entries)
    shown = [entry for entry in merged if end is None or time_of(entry) <= end]
    has_newer = bool(ends) or len(shown) > top
    if len(shown) > top:
        end = minute_of(time_of(shown[-top])) + _MINUTE
        shown = [entry for entry in shown if time_of(entry) < end]
        has_newer = bool(ends) or len(shown) < len(merged)
    oldest = time_of(shown[-1]) if shown else start
    newer = {"after": write_position(time_of(shown[0]))} if has_newer and shown else None
    return LogPage(shown, {"before": write_position(minute_of(oldest) if written.entries else oldest)}, newer)


def _filters(account: Account | None, query: ActivityQuery) -> tuple[ActivityFilter, ChangeFilter | None]:
    """Split a query into filters for activities and, in an account, for changes."""
    wanted = query.to_filter(None if account is None else [account.pk])
    return wanted, None if account is None else query.to_changes()


def _changes(
    account: Account | None,
    chosen: ChangeFilter | None,
    *,
    top: int,
    after: datetime | None = None,
    before: datetime | None = None,
) -> ChangePage[ChangeEntry]:
    if account is None or chosen is None:
        return ChangePage([], None)
    return changes.page(
        account,
        _within(chosen, after, None),
        before=before,
        top=top,
        oldest_first=after is not None,
        by_minute=True,
    )


def minute_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _both(newer: Sequence[Activity], older: Sequence[Activity]) -> list[Activity]:
    """Merge two lists of activities that may overlap."""
    return list({it.pk: it for it in (*newer, *older)}.values())


def _merge(
    condition: ActivityFilter, done: Sequence[Activity], written: Sequence[ChangeEntry]
) -> list[Entry]:
    """Merge activities and changes by time, without changes covered by a matching activity."""
    told: set[str] = set()
    if written:
        since, until = written[-1].earliest - _CLOCKS, written[0].latest + _CLOCKS
        near = replace(condition, since=since, until=until)
        told = activity.requests_of(
            near, registry.verbs_of_entities(), {it.request for it in written if it.request}
        )
    entries: list[Entry] = [*done, *(it for it in written if it.request not in told)]
    return sorted(entries, key=time_of, reverse=True)


def _within(wanted: Wanted, since: datetime | None, until: datetime | None) -> Wanted:
    """Return a filter further limited to a period."""
    times = [it for it in (wanted.since, since) if it is not None]
    limits = [it for it in (wanted.until, until) if it is not None]
    return replace(wanted, since=max(times, default=None), until=min(limits, default=None))


_VERBS: Final = {
    (True, False, False): EntityVerb.INSERT,
    (False, False, True): EntityVerb.DELETE,
}


def as_activity(entry: ChangeEntry, account: Account) -> Activity:
    """Convert a recorded change to an unsaved activity, as if the console had made it."""
    kinds = bool(entry.inserted), bool(entry.changed), bool(entry.deleted)
    table = entry.table
    done = Activity(
        verb=_VERBS.get(kinds, EntityVerb.CHANGE),
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
    done.first_key = entry.key._asdict()  # type: ignore[attr-defined]
    done.has_table = table is not None and table.deleted_at is None  # type: ignore[attr-defined]
    return done
