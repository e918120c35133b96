"""Property indexes for ranges, prefixes and sorting; equality needs none."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from django.db import DatabaseError, connection, transaction

from storage.accounts import accounts, quotas
from storage.accounts.refusals import AccountError
from storage.activity import activity
from storage.core.quotas import INDEXES
from storage.core.verbs import Verb
from storage.domain.access.actor import SERVER, Actor, ActorKind
from storage.domain.access.roles import Capability
from storage.domain.errors import PropertyNameInvalid, ResourceNotFound
from storage.domain.filters.access_plan import AccessPath, AccessPlan
from storage.domain.filters.query import EntityQuery, Sort
from storage.domain.refusals import Reason
from storage.domain.values.names import check_property_name
from storage.domain.values.stored import read_member
from storage.jobs import jobs
from storage.jobs.kinds import (
    JobKind,
    JobMustWait,
    NoState,
    Run,
    Step,
)
from storage.models import Account, Activity, Job, PropertyIndex, Table
from storage.sql import indexes
from storage.sql.background import estimated_rows, sizes_of, try_lock
from storage.sql.failures import Canceled
from storage.sql.indexes import StoredIndex
from storage.sql.notify import notify_table
from storage.sql.relations import INDEXING
from storage.tables.index_rules import (
    DISK_SHARE,
    INDEXED_FROM,
    IndexOrigin,
    IndexReason,
    IndexState,
)
from storage.tables.subject import TableVerb

_TOO_LARGE: Final = (
    "With it, the indexes of properties would take more than half of the space of the other data."
)
_PENDING: Final = (IndexState.BUILDING, IndexState.DROPPING)
_KEYS: Final = ("PartitionKey", "RowKey")
_ADAPTIVE: Final = 0  # instead of the id of a table: the lock of the server that makes an adaptive index


class IndexExists(AccountError):
    """The property has an index."""


class IndexMissing(AccountError):
    """The property has no index."""


class IndexFailed(AccountError):
    """PostgreSQL could not create the index."""


class TooManyIndexes(AccountError):
    """The table has reached the limit of indexes."""


@dataclass(frozen=True, slots=True)
class IndexDetails:
    """Index with PostgreSQL's information about it; ``size`` in bytes."""

    index: PropertyIndex
    size: int


@dataclass(frozen=True, slots=True)
class IndexUse:
    """Use of indexes by a query, and useful new ones."""

    is_range: bool = False  # whether the index of a property finds the entities
    candidates: frozenset[str] = frozenset()  # properties whose index would find them


def indexed(table_id: int) -> frozenset[str]:
    """Return the properties of a table with a ready index."""
    ready = PropertyIndex.objects.filter(table_id=table_id, state=IndexState.READY)
    return frozenset(ready.values_list("name", flat=True))


def using(table: Table, wanted: EntityQuery) -> EntityQuery:
    """Return the query with the table's indexes that it can use."""
    return wanted if wanted.filter is None else replace(wanted, indexed=indexed(table.pk))


def explain(table: Table, access: AccessPlan, sort: Sort | None = None, read: int | None = None) -> IndexUse:
    """Explain how a query uses property indexes or could; ``read`` is the number of entities scanned, default all."""
    if access.is_by_keys and sort is None:
        return IndexUse()
    known = indexed(table.pk)
    missing = access.index_candidates(known)
    if sort is not None and sort.property not in (*known, *_KEYS):
        missing = (missing or frozenset()) | {sort.property}
    if missing is None:
        is_sorted = sort is not None and sort.property in known
        return IndexUse(is_range=is_sorted or access.index_candidates() is not None)
    if read is None and access.path is AccessPath.TABLE_SCAN:
        read = estimated_rows(table.pk)
    return IndexUse(candidates=missing if missing and (read or 0) >= INDEXED_FROM else frozenset())


def find(table: Table, name: str) -> PropertyIndex | None:
    """Return the index of a property."""
    return PropertyIndex.objects.filter(table=table, name=name).first()


def asked_for(account: Account) -> dict[int, list[str]]:
    """Return the properties with an index requested by a user, by table id; failed indexes are left out."""
    by_table: dict[int, list[str]] = {}
    own = PropertyIndex.objects.filter(
        table__account=account, table__deleted_at=None, state__in=(IndexState.READY, IndexState.BUILDING)
    ).exclude(origin=IndexOrigin.ADAPTIVE)
    for table_id, name in own.order_by("name").values_list("table_id", "name"):
        by_table.setdefault(table_id, []).append(name)
    return by_table


def describe(table: Table) -> list[IndexDetails]:
    """Return the indexes of a table by property name."""
    rows = list(PropertyIndex.objects.filter(table=table).order_by("name"))
    sizes = indexes.stored(table.pk, [index.pk for index in rows])
    nothing = StoredIndex(is_valid=False, size=0, scans=0)
    return [IndexDetails(index, sizes.get(index.pk, nothing).size) for index in rows]


@transaction.atomic
def add(
    table: Table,
    name: str,
    *,
    by: Actor = SERVER,
    origin: IndexOrigin = IndexOrigin.HAND,
    undoes: Activity | None = None,
    reason: IndexReason | None = None,
) -> Activity:
    """Start a job that builds the index of a property.

    An index that failed is tried again. If a person asks for an index the server made, it becomes theirs and
    is kept. Raises IndexExists, or TooManyIndexes.
    """
    check_property_name(name)
    if name in _KEYS:
        raise PropertyNameInvalid
    account = _lock(table)
    by_name = {index.name: index for index in PropertyIndex.objects.filter(table=table)}
    index = by_name.get(name)
    if index is not None and index.state in (IndexState.BUILDING, IndexState.READY):
        if undoes is not None and undoes.effective_verb is not TableVerb.INDEX_KEEP:
            raise activity.ChangedSince
        if index.origin != IndexOrigin.ADAPTIVE or origin is IndexOrigin.ADAPTIVE:
            raise IndexExists(Reason.INDEX_EXISTS, property=name, table=table.name)
        PropertyIndex.objects.filter(pk=index.pk).update(origin=origin)
        return _record(TableVerb.INDEX_KEEP, by, account, table, name, origin, undoes)
    most = quotas.limit(INDEXES)
    if index is None and len(by_name) >= most:
        raise TooManyIndexes(Reason.TOO_MANY_INDEXES, most=most, table=table.name)
    stored = {
        "state": IndexState.BUILDING,
        "origin": origin,
        "error": "",
        "reason": reason and reason._asdict(),
    }
    index, _ = PropertyIndex.objects.update_or_create(table=table, name=name, defaults=stored)
    _start(account, table, index, by)
    _decline(table, name, is_declined=False)
    return _record(TableVerb.INDEX_ADD, by, account, table, name, origin, undoes)


@transaction.atomic
def drop(table: Table, name: str, *, by: Actor = SERVER, undoes: Activity | None = None) -> Activity:
    """Drop an index: queries stop using it at once, and a job frees its space. Raises IndexMissing."""
    account = _lock(table)
    index = PropertyIndex.objects.filter(table=table, name=name).exclude(state=IndexState.DROPPING).first()
    if index is None:
        raise IndexMissing(Reason.NO_INDEX, property=name, table=table.name)
    index.state = IndexState.DROPPING
    index.save(update_fields=("state",))
    _start(account, table, index, by)
    if by.kind is not ActorKind.SERVER:
        _decline(table, name, is_declined=True)
    notify_table(table.account_id, table.folded_name)
    return _record(
        TableVerb.INDEX_DROP, by, account, table, name, read_member(IndexOrigin, index.origin), undoes
    )


@transaction.atomic
def release(table: Table, name: str, *, by: Actor, undoes: Activity) -> Activity:
    """Undo that a user keeps an adaptive index; raises ChangedSince if it was replaced."""
    account = _lock(table)
    kept = PropertyIndex.objects.filter(table=table, name=name, created_at__lte=undoes.at)
    if not kept.update(origin=IndexOrigin.ADAPTIVE):
        raise activity.ChangedSince
    return _record(TableVerb.INDEX_KEEP, by, account, table, name, IndexOrigin.ADAPTIVE, undoes)


def _decline(table: Table, name: str, *, is_declined: bool) -> None:
    """Record whether the server may index a property by itself; the table must be locked."""
    stored = Table.objects.get(pk=table.pk)
    names = (
        {*(stored.declined_indexes or ()), name}
        if is_declined
        else {*(stored.declined_indexes or ())} - {name}
    )
    Table.objects.filter(pk=table.pk).update(declined_indexes=sorted(names) or None)


def _lock(table: Table) -> Account:
    """Lock the table, so that changes of its indexes are serialized; return its writable account."""
    account = accounts.writable(table.account)
    if not Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None).exists():
        raise ResourceNotFound
    return account


def _record(
    verb: Verb,
    by: Actor,
    account: Account,
    table: Table,
    name: str,
    origin: IndexOrigin,
    undoes: Activity | None,
) -> Activity:
    detail = {"property": name, "origin": origin}
    return activity.record(verb, by, account=account, table=table, detail=detail, undoes=undoes)


@dataclass(frozen=True, slots=True)
class Arguments:
    index: int  # the primary key of a PropertyIndex, whose state says what is to be done
    property: str


class _IndexJob(JobKind[Arguments, NoState]):
    """Job that builds or drops an index."""

    name, arguments, state, capability = "table.index", Arguments, NoState, Capability.MANAGE_TABLES
    is_transactional = False

    def needed_access(self, job: Job, arguments: Arguments) -> None:
        """Require no access, as the job completes an index that is already recorded."""

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        return Step(NoState())

    def step(self, run: Run[Arguments], state: NoState) -> Step[NoState]:
        table = run.job.table
        if table is None or table.deleted_at is not None:
            return Step(state, is_finished=True)  # should it be restored, another job does what is left
        with ExitStack() as locks:
            _take_lock(locks, table.pk)  # unless another index is made, or the rows are moved
            index = PropertyIndex.objects.filter(pk=run.arguments.index).select_related("table").first()
            if index is not None:
                if index.state == IndexState.BUILDING and index.origin == IndexOrigin.ADAPTIVE:
                    _take_lock(locks, _ADAPTIVE)  # all servers together make one at a time
                _run(index)
        return Step(state, is_finished=True)


INDEX_JOB: Final = _IndexJob()


def _take_lock(locks: ExitStack, number: int) -> None:
    if not locks.enter_context(try_lock(INDEXING, number)):
        raise JobMustWait


def _start(account: Account, table: Table, index: PropertyIndex, by: Actor) -> None:
    jobs.start(INDEX_JOB, Arguments(index.pk, index.name), account=account, table=table, by=by)


def resume_pending(table: Table, *, by: Actor) -> None:
    """Resume pending index builds and drops of a restored table."""
    for index in PropertyIndex.objects.filter(table=table, state__in=_PENDING):
        _start(table.account, table, index, by)


def _run(index: PropertyIndex) -> None:
    own = PropertyIndex.objects.filter(pk=index.pk, state=index.state)
    if index.state == IndexState.DROPPING:
        indexes.drop(index.table_id, index.pk)
        own.delete()
    elif index.state == IndexState.BUILDING:
        error = _build(index)
        state = IndexState.FAILED if error else IndexState.READY
        if own.update(state=state, error=error):
            notify_table(index.table.account_id, index.table.folded_name)
        if error:
            raise IndexFailed(
                Reason.INDEX_FAILED, property=index.name, table=index.table.name, why=error.partition("\n")[0]
            )


def _build(index: PropertyIndex) -> str:
    """Build an index and return the reason of a failure; raises JobMustWait to retry after a cancellation."""
    try:
        stored = _stored(index)
        if stored is None or not stored.is_valid:
            if stored is not None:
                indexes.drop(index.table_id, index.pk)
            indexes.create(index.table, index.pk, index.name)
        if index.origin == IndexOrigin.ADAPTIVE and not _is_small_enough(index):
            indexes.drop(index.table_id, index.pk)
            return _TOO_LARGE
        indexes.analyze(index.table)
    except Canceled:
        raise JobMustWait from None
    except DatabaseError as error:
        if not connection.is_usable():
            raise
        if not Table.objects.filter(pk=index.table_id, deleted_at=None).exists():
            raise JobMustWait from None
        if _stored(index) is not None:
            indexes.drop(index.table_id, index.pk)
        return str(error).strip()
    return ""


def _is_small_enough(index: PropertyIndex) -> bool:
    """Return whether a table's property indexes are within their share of its size."""
    size = sizes_of([index.table_id]).get(index.table_id)
    others = PropertyIndex.objects.filter(table=index.table_id).values_list("pk", flat=True)
    taken = sum(it.size for it in indexes.stored(index.table_id, list(others)).values())
    return size is None or taken <= DISK_SHARE * (size.capacity - taken)


def _stored(index: PropertyIndex) -> StoredIndex | None:
    return indexes.stored(index.table_id, [index.pk]).get(index.pk)
