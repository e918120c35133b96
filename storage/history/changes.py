"""Changes of an account's entities, with authors and times: lists and histograms."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Self, TypeVar

from django.db.models import F, Q

from storage.activity import activity
from storage.activity.actors import label_actors, name_actors, read_actor
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.errors import OperationTimedOut, TableNotFound
from storage.domain.history.recorded import ChangeGroup, ChangePage, RecordedChange
from storage.domain.history.recorded import Op as Op
from storage.domain.values.stored import read_member
from storage.domain.values.ticks import to_datetime, to_ticks
from storage.domain.values.time_buckets import TimeBucket
from storage.history import past
from storage.models import Account, Activity, HistoryActor, RegisteredSas, Table
from storage.relations.record import recorded_changes
from storage.sql import changes as statements
from storage.sql import django as sql
from storage.sql import versions
from storage.sql.changes import Selection, Span
from storage.sql.comparing import NO_TABLE
from storage.sql.forms import history_of
from storage.sql.record import Record
from storage.sql.relations import relation_of
from storage.sql.statement import Statement

T = TypeVar("T")

LIMIT: Final = timedelta(seconds=5)
_SLACK: Final = timedelta(minutes=5)  # by which our clock and that of the database may differ
# changes that a page reads at first, and while they are too few groups, as with change sets and bulk edits
_WINDOWS: Final = (600, 6_000, 20_000)
_LARGEST_WINDOW: Final = 100_000  # the last window for loads, whose requests are put together
CLIENTS: Final = (ActorKind.KEY, ActorKind.SAS, ActorKind.BEARER, ActorKind.TOKEN)
_MOST_APART: Final = 20  # tables that record changes apart; each of them takes a statement of its own
_NOBODY: Final = HistoryActor(kind=ActorKind.SERVER)


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """A filter of the changes of an account; an empty one matches all.

    ``actor`` is part of a name or of the label of a SAS token, ``caller`` the whole; ``actors`` are kinds and names.
    Addresses and clients may be any, but not with an ``actor_id``, as ChangeGroup has it. ``key`` is part of a
    PartitionKey or RowKey, case-sensitive, ``entity`` has both. ``until`` is exclusive. ``numbers`` are sequence
    numbers of single changes, ``span`` is the span of an edit.
    """

    table: str = ""
    table_id: int | None = None
    actor: str = ""
    caller: str = ""
    actors: tuple[tuple[str, str], ...] = ()
    actor_id: int | None = None
    doors: tuple[ActorKind, ...] = ()
    ops: tuple[Op, ...] = ()
    requests: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    key: str = ""
    span: Span | None = None
    since: datetime | None = None
    until: datetime | None = None
    entity: EntityKey | None = None

    def dump(self) -> str:
        """Serialize the filter to text, as it may hold characters that PostgreSQL's JSON cannot store."""
        fields = asdict(self)
        if self.entity is None:  # servers of older versions do not know it
            del fields["entity"]
        return json.dumps(fields, default=datetime.isoformat)

    @classmethod
    def load(cls, text: str) -> Self:
        fields = json.loads(text)
        times = {name: fields[name] and datetime.fromisoformat(fields[name]) for name in ("since", "until")}
        several = {
            "actors": tuple((kind, name) for kind, name in fields["actors"]),
            "doors": tuple(map(ActorKind, fields["doors"])),
            "ops": tuple(map(Op, fields["ops"])),
            "requests": tuple(fields["requests"]),
            "numbers": tuple(fields["numbers"]),
        }
        entity = EntityKey(*fields["entity"]) if "entity" in fields else None
        span = fields["span"] and tuple(fields["span"])
        return cls(**{**fields, **times, **several, "span": span, "entity": entity})


# the table is None if it is dropped
ChangeEntry = ChangeGroup[Actor, Table | None]


@dataclass(frozen=True, slots=True)
class Caller:
    """An author of changes, and their number."""

    actor: Actor
    number: int


def page(
    account: Account,
    change_filter: ChangeFilter,
    *,
    before: datetime | None = None,
    top: int = 50,
    oldest_first: bool = False,
    by_minute: bool = False,
) -> ChangePage[ChangeEntry]:
    """Return the newest entries, or those after ``change_filter.since``; raises OperationTimedOut.

    ``before`` is the time at which the page with newer entries ended, whose entries are left out. With ``by_minute``,
    many requests of a client to a table within a minute are one entry; then there may be more than ``top``, and
    ``next`` is a time down (or up) to which the page is complete.
    """
    selection = select(account, change_filter)
    if selection is None:
        return ChangePage([], None)
    until = min(filter(None, (change_filter.until, before)), default=None)

    def read(record: Record) -> ChangePage[ChangeGroup[int, int]]:
        return _groups(record, selection, top, before=before, oldest_first=oldest_first, by_minute=by_minute)

    pages = list(_read_each(account, selection, read, change_filter.since, until))
    if by_minute:
        return _merge_minutes(account, pages, oldest_first=oldest_first)
    groups = [group for page in pages for group in page.entries]
    if oldest_first:
        groups.sort(key=lambda it: it.earliest)
    else:
        groups.sort(key=lambda it: it.latest, reverse=True)
    entries, is_last = _entries(account, groups[:top]), len(groups) <= top
    following = None if not entries else to_ticks(entries[-1].latest)
    if is_last and all(page.next is None for page in pages):
        following = None
    if oldest_first:
        entries.reverse()
    return ChangePage(entries, following)


def _merge_minutes(
    account: Account, pages: Sequence[ChangePage[ChangeGroup[int, int]]], *, oldest_first: bool
) -> ChangePage[ChangeEntry]:
    """Merge the pages of several records up to where all are complete, newest first."""
    ends = [it.next for it in pages if it.next is not None]
    end = (min(ends) if oldest_first else max(ends)) if ends else None
    groups = [
        group
        for page in pages
        for group in page.entries
        if end is None
        or page.next == end
        or (to_ticks(group.latest) <= end if oldest_first else to_ticks(group.latest) >= end)
    ]
    groups.sort(key=lambda it: it.latest, reverse=True)
    return ChangePage(_entries(account, groups), end)


def _groups(
    record: Record,
    selection: Selection,
    top: int,
    *,
    before: datetime | None,
    oldest_first: bool,
    by_minute: bool,
) -> ChangePage[ChangeGroup[int, int]]:
    end = None if before is None else to_ticks(before)
    for rows in (*_WINDOWS[:-1], _LARGEST_WINDOW) if by_minute else _WINDOWS:
        group_page = run_limited(
            statements.groups(
                record,
                selection,
                rows=rows,
                top=top + 1,
                before=end,
                oldest_first=oldest_first,
                by_minute=by_minute,
            )
        )
        if group_page.next is None or len(group_page.entries) > top:
            break
    return group_page


def _read_each(
    account: Account,
    selection: Selection,
    read: Callable[[Record], T],
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    most: int | None = _MOST_APART,
) -> Iterator[T]:
    """Read the records that may contain the changes, of the ``most`` last written tables with their own."""
    local = recorded_changes(account.pk, since, until)
    tables = Table.objects.recording_apart().filter(account=account)
    if selection.tables is not None:
        tables = tables.filter(pk__in=selection.tables)
    latest = tables.order_by(F("written_at").desc(nulls_last=True))[:most]
    if local:
        yield read(local)
    for table in latest:
        with suppress(TableNotFound):  # it was dropped meanwhile
            yield read(statements.beside(table.pk, _history(table)))


def _history(table: Table) -> str:
    return history_of(relation_of(table))


def histogram(
    account: Account, change_filter: ChangeFilter, since: datetime, until: datetime, buckets: int
) -> list[TimeBucket]:
    """Count the changes between two times, in buckets with the count `changes`; raises OperationTimedOut."""
    width = max(1, -(-(to_ticks(until) - to_ticks(since)) // buckets))
    counted: Counter[int] = Counter()
    change_filter = replace(change_filter, since=since, until=until)
    selection = select(account, change_filter)
    if selection is not None:

        def read(record: Record) -> dict[int, int]:
            return run_limited(statements.histogram(record, selection, to_ticks(since), width))

        for counts in _read_each(account, selection, read, since, until):
            counted.update(counts)
    starts = [to_datetime(to_ticks(since) + width * number) for number in range(buckets + 1)]
    return [
        TimeBucket(starts[number], starts[number + 1], Counter(changes=counted[number]))
        for number in range(buckets)
    ]


def count_by_table(account: Account, wanted: ChangeFilter) -> dict[int, int]:
    """Count the matching changes by table id; raises OperationTimedOut."""
    return _count(account, wanted, "tbl", most=None)


def _count(
    account: Account, change_filter: ChangeFilter, column: str, *, most: int | None = _MOST_APART
) -> Counter[int]:
    counted: Counter[int] = Counter()
    selection = select(account, change_filter)
    if selection is not None:

        def read(record: Record) -> dict[int, int]:
            return run_limited(statements.count(record, selection, column))

        since, until = change_filter.since, change_filter.until
        for counts in _read_each(account, selection, read, since, until, most=most):
            counted.update(counts)
    return counted


def count_up_to(account: Account, change_filter: ChangeFilter, most: int) -> int:
    """Count the matching changes up to a maximum; raises OperationTimedOut."""
    selection = select(account, change_filter)
    if selection is None:
        return 0

    def read(record: Record) -> int:
        return run_limited(statements.count_up_to(record, selection, most))

    return min(sum(_read_each(account, selection, read, change_filter.since, change_filter.until)), most)


def recent_callers(account: Account, since: datetime, top: int) -> list[Actor]:
    """Return the clients that wrote since a time, latest first, from the newest changes."""
    try:
        entries = page(account, ChangeFilter(since=since, doors=CLIENTS), top=top, by_minute=True).entries
    except OperationTimedOut:
        return []
    return list({(it.actor.kind, it.actor.name, it.actor.address): it.actor for it in entries}.values())


def callers(account: Account, change_filter: ChangeFilter) -> list[Caller]:
    """Return callers with the number of their matching changes, most first; raises OperationTimedOut."""
    counted = _count(account, change_filter, "actor")
    actors = HistoryActor.objects.in_bulk(counted)
    totals: Counter[tuple[str, str]] = Counter()
    for pk, actor in actors.items():
        totals[actor.kind, actor.name] += counted[pk]
    most = totals.most_common()
    named = label_actors(account.pk, (Actor(read_member(ActorKind, kind), name) for (kind, name), _ in most))
    return [Caller(actor, number) for actor, (_, number) in zip(named, most, strict=True)]


def with_images(
    account: Account, table: Table, change_filter: ChangeFilter, top: int | None
) -> list[RecordedChange]:
    """Return the first matching changes of a table, which may be deleted, with the entities before and after."""
    selection, record = select(account, change_filter), recorded_changes(account.pk, change_filter.since)
    if selection is None:
        return []
    named, source = (table.name, table.pk), past.source_of(table)
    if not table.form.capabilities.records_in_account:
        if change_filter.span is None:
            own = statements.beside(table.pk, _history(table))
            changes = run_limited(statements.with_images_before(named, own, selection, top))
            return [_complete(table, it) for it in name_actors(account.pk, changes)]
        # before it had that form, its changes were recorded together with other tables' changes
        source = NO_TABLE
    if not record:
        return []
    try:
        changes = run_limited(statements.with_images(source, named, record, selection, top))
    except TableNotFound:  # it is dropped
        changes = run_limited(statements.with_images(NO_TABLE, named, record, selection, top))
    return name_actors(account.pk, changes)


def _complete(table: Table, change: RecordedChange) -> RecordedChange:
    """Add the entity after a change to it, for a table with its own history, where sequences are Timestamps."""
    number = change.sequence
    steps = versions.beside(relation_of(table), _history(table), change.key, number, 0)
    for row in sql.walk(steps, run_limited):
        # the change after it has the entity as it was before that, and the row is what the last one has made
        if row.was == b"%d" % number and row.sequence != number and row.content is not None:
            return change._replace(after=StoredEntity(encode_entity_key(change.key), row.was, row.content))
    return change


def selection_of(done: Activity) -> ChangeFilter:
    """Return a filter for the changes of an activity, in one transaction or, if it has a begin time, in several."""
    if done.recorded:
        xid, first, last = done.recorded
        return ChangeFilter(table_id=done.table_id, span=(xid, first, last))
    began = done.detail.get("began")
    return ChangeFilter(
        table_id=None if began else done.table_id,
        requests=(done.request_id,),
        since=(datetime.fromisoformat(began) if began else done.at) - _SLACK,
        until=done.at + _SLACK,
    )


def made_by(done: Activity, top: int | None = None) -> list[RecordedChange]:
    """Return the first changes of an activity, in order, that are still kept."""
    if done.recorded is None and "began" not in done.detail:
        return activity.former_changes(done, top=top)
    change_filter = selection_of(done)
    tables = Table.objects.filter(account=done.account_id or 0).select_related("account").order_by("pk")
    if change_filter.table_id is None:
        account = Account.objects.filter(pk=done.account_id or 0).first()
        tables = tables.filter(pk__in=() if account is None else count_by_table(account, change_filter))
    else:
        tables = tables.filter(pk=change_filter.table_id)
    changes: list[RecordedChange] = []
    for table in tables:
        if top is None or len(changes) < top:
            changes += with_images(table.account, table, change_filter, top)
    places = {key: place for place, key in enumerate(activity.keys_of(done))}
    return sorted(changes[:top], key=lambda it: places.get(it.key, len(places)))


def select(account: Account, change_filter: ChangeFilter) -> Selection | None:
    """Resolve the table and actor names of a filter to ids; None if nothing can match."""
    tables: tuple[int, ...] | None = None if change_filter.table_id is None else (change_filter.table_id,)
    if change_filter.table:
        named = Table.objects.filter(account=account, name__iexact=change_filter.table)
        tables = tuple(named.values_list("pk", flat=True))
    actors = _find_actors(account, change_filter)
    if tables == () or actors == ():
        return None
    return Selection(
        tables,
        None if change_filter.since is None else to_ticks(change_filter.since),
        None if change_filter.until is None else to_ticks(change_filter.until),
        actors,
        change_filter.ops,
        change_filter.requests,
        change_filter.numbers,
        change_filter.key,
        change_filter.entity,
        change_filter.span,
    )


def _find_actors(account: Account, change_filter: ChangeFilter) -> tuple[int, ...] | None:
    conditions = Q()
    if change_filter.doors:
        conditions &= Q(kind__in=change_filter.doors)
    if change_filter.actor:
        conditions &= _is_named(account, change_filter.actor, "icontains")
    if change_filter.caller:
        conditions &= _is_named(account, change_filter.caller, "exact")
    if change_filter.actors:
        exact = Q()
        for kind, name in change_filter.actors:
            exact |= Q(kind=kind, name=name)
        conditions &= exact
    if change_filter.actor_id is not None:
        conditions &= Q(pk=change_filter.actor_id)
    if not conditions:
        return None
    return tuple(HistoryActor.objects.filter(conditions).values_list("pk", flat=True))


def _is_named(account: Account, name: str, lookup: str) -> Q:
    """Match actors by their name, the name of their API token, or the label of their SAS token."""
    labelled = RegisteredSas.objects.filter(**{"account": account, f"label__{lookup}": name})
    named = Q(**{f"name__{lookup}": name}) | Q(**{f"token__{lookup}": name})
    return named | Q(kind=ActorKind.SAS, name__in=labelled.values("fingerprint"))


def _entries(account: Account, groups: Sequence[ChangeGroup[int, int]]) -> list[ChangeEntry]:
    tables = Table.objects.in_bulk({group.table for group in groups})
    actors = HistoryActor.objects.in_bulk({group.actor for group in groups})
    named = label_actors(
        account.pk, (read_actor(actors.get(group.actor, _NOBODY), group.request) for group in groups)
    )
    return [
        ChangeGroup(group.request, tables.get(group.table), actor, *group[3:])
        for group, actor in zip(groups, named, strict=True)
    ]


def run_limited(statement: Statement[T], limit: timedelta = LIMIT, *, settings: str = "") -> T:
    """Run a statement with the time limit of a list; raises OperationTimedOut."""
    return sql.run_limited(statement, limit, settings=settings)
