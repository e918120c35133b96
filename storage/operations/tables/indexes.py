"""Indexes of single properties. Equality on properties needs none; ranges, prefixes and order do.

An index is asked for in a transaction, and made or dropped afterwards by a background job, because PostgreSQL does
that without blocking writers only outside of transactions. A server that dies meanwhile leaves an invalid index behind,
which the next one makes again.
"""

from dataclasses import dataclass, replace
from typing import Final

from django.db import DatabaseError, connection, transaction

from storage.domain.access.actor import SERVER, Actor
from storage.domain.errors import PropertyNameInvalid, ResourceNotFound
from storage.domain.filters.access_plan import AccessPath, AccessPlan
from storage.domain.filters.query import EntityQuery, Sort
from storage.domain.refusals import Reason
from storage.domain.service.activity import Verb
from storage.domain.service.indexes import INDEXED_FROM, IndexOrigin, IndexState
from storage.domain.service.quotas import INDEXES
from storage.domain.values.names import check_property_name
from storage.models import Account, Activity, PropertyIndex, Table
from storage.operations.accounts import accounts, quotas
from storage.operations.accounts.refusals import AccountError
from storage.operations.activity import activity
from storage.sql import indexes
from storage.sql.background import estimated_rows, try_lock
from storage.sql.failures import Canceled
from storage.sql.indexes import StoredIndex
from storage.sql.notify import notify_table
from storage.sql.relations import INDEXING

_PENDING: Final = (IndexState.BUILDING, IndexState.DROPPING)
_KEYS: Final = ("PartitionKey", "RowKey")


class IndexExists(AccountError):
    """The property has an index."""


class IndexMissing(AccountError):
    """The property has no index."""


class TooManyIndexes(AccountError):
    """The table has as many as it may have."""


@dataclass(frozen=True, slots=True)
class IndexDetails:
    """An index with what PostgreSQL says of it; ``size`` in bytes."""

    index: PropertyIndex
    size: int


@dataclass(frozen=True, slots=True)
class IndexUse:
    """``is_range``: the index of a property finds the entities; ``candidates``: those whose index would."""

    is_range: bool = False
    candidates: frozenset[str] = frozenset()


def indexed(table_id: int) -> frozenset[str]:
    """Return the properties of a table that have an index ready for use."""
    ready = PropertyIndex.objects.filter(table_id=table_id, state=IndexState.READY)
    return frozenset(ready.values_list("name", flat=True))


def using(table: Table, wanted: EntityQuery) -> EntityQuery:
    """Return the query as one that uses the indexes of a table."""
    return wanted if wanted.filter is None else replace(wanted, indexed=indexed(table.pk))


def explain(table: Table, access: AccessPlan, sort: Sort | None = None, read: int | None = None) -> IndexUse:
    """Say how a query uses indexes of properties or could use them; it reads so many entities, else all."""
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


def describe(table: Table) -> list[IndexDetails]:
    """Return the indexes of a table by the names of their properties."""
    found = list(PropertyIndex.objects.filter(table=table).order_by("name"))
    sizes = indexes.stored(table.pk, [index.pk for index in found])
    nothing = StoredIndex(is_valid=False, size=0, scans=0)
    return [IndexDetails(index, sizes.get(index.pk, nothing).size) for index in found]


@transaction.atomic
def add(
    table: Table,
    name: str,
    *,
    by: Actor = SERVER,
    origin: IndexOrigin = IndexOrigin.HAND,
    undoes: Activity | None = None,
) -> Activity:
    """Have the index of a property made; run_pending does it. An index that failed is tried again.

    Raises IndexExists, or TooManyIndexes.
    """
    check_property_name(name)
    if name in _KEYS:
        raise PropertyNameInvalid
    account = _lock(table)
    found = {index.name: index for index in PropertyIndex.objects.filter(table=table)}
    index = found.get(name)
    if index is not None and index.state in (IndexState.BUILDING, IndexState.READY):
        if undoes is not None:
            raise activity.ChangedSince
        raise IndexExists(Reason.INDEX_EXISTS, property=name, table=table.name)
    most = quotas.limit(INDEXES)
    if index is None and len(found) >= most:
        raise TooManyIndexes(Reason.TOO_MANY_INDEXES, most=most, table=table.name)
    PropertyIndex.objects.update_or_create(
        table=table, name=name, defaults={"state": IndexState.BUILDING, "origin": origin, "error": ""}
    )
    return _record(Verb.INDEX_ADD, by, account, table, name, origin, undoes)


@transaction.atomic
def drop(table: Table, name: str, *, by: Actor = SERVER, undoes: Activity | None = None) -> Activity:
    """Have an index dropped; queries no longer use it, and run_pending frees its space. Raises IndexMissing."""
    account = _lock(table)
    index = PropertyIndex.objects.filter(table=table, name=name).exclude(state=IndexState.DROPPING).first()
    if index is None:
        raise IndexMissing(Reason.NO_INDEX, property=name, table=table.name)
    index.state = IndexState.DROPPING
    index.save(update_fields=("state",))
    notify_table(table.account_id, table.folded_name)
    return _record(Verb.INDEX_DROP, by, account, table, name, IndexOrigin(index.origin), undoes)


def _lock(table: Table) -> Account:
    """Lock the table, so that its indexes change one after the other; return what the activity log needs."""
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


def is_pending(table: Table) -> bool:
    return PropertyIndex.objects.filter(table=table, state__in=_PENDING).exists()


def run_pending(table: Table | None = None) -> None:
    """Make and drop the indexes that wait for it, of one or all tables; several servers share the work."""
    pending = (
        PropertyIndex.objects.filter(state__in=_PENDING, table__deleted_at=None)
        .order_by("pk")
        .select_related("table")
    )
    for index in pending.filter(table=table) if table is not None else pending:
        with try_lock(INDEXING, index.table_id) as is_alone:
            if is_alone:
                _run(index)


def _run(index: PropertyIndex) -> None:
    # another process may have done it before the lock was free
    state = PropertyIndex.objects.filter(pk=index.pk).values_list("state", flat=True).first()
    own = PropertyIndex.objects.filter(pk=index.pk, state=state)
    if state == IndexState.DROPPING:
        indexes.drop(index.table_id, index.pk)
        own.delete()
    elif state == IndexState.BUILDING:
        changes = _build(index)
        if own.update(**changes):
            notify_table(index.table.account_id, index.table.folded_name)


def _build(index: PropertyIndex) -> dict[str, str]:
    """Make an index, and return what is to be stored of it. If it was canceled, another attempt follows."""
    try:
        found = _stored(index)
        if found is None or not found.is_valid:
            if found is not None:
                indexes.drop(index.table_id, index.pk)
            indexes.create(index.table, index.pk, index.name)
        indexes.analyze(index.table)
    except Canceled:
        return {"state": IndexState.BUILDING}
    except DatabaseError as error:
        if not connection.is_usable():
            raise
        if not Table.objects.filter(pk=index.table_id, deleted_at=None).exists():
            return {"state": IndexState.BUILDING}  # should the table be restored
        if _stored(index) is not None:
            indexes.drop(index.table_id, index.pk)
        return {"state": IndexState.FAILED, "error": str(error).strip()}
    return {"state": IndexState.READY}


def _stored(index: PropertyIndex) -> StoredIndex | None:
    return indexes.stored(index.table_id, [index.pk]).get(index.pk)
