"""Tables of an account: control operations, with the ORM."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils import timezone

from storage.domain.analytics import metrics_table
from storage.domain.errors import (
    InsufficientAccountPermissions,
    InvalidResourceName,
    ResourceNotFound,
    ServerBusy,
    TableAlreadyExists,
    TableNotFound,
)
from storage.domain.filters import matches_table
from storage.domain.names import fold_table_name, is_analytics_name
from storage.domain.query import TableQuery
from storage.models import StoredAccessPolicy, Table
from storage.operations import service_properties
from storage.operations.heeded import heeded
from storage.sql import background, relations
from storage.sql import django as sql
from storage.sql.failures import Canceled
from storage.sql.notify import notify


def find(account_id: int, folded_name: str) -> Table | None:
    if is_analytics_name(folded_name):
        return _find_metrics(account_id, folded_name)
    return _find(account_id, folded_name)


def _find(account_id: int, folded_name: str) -> Table | None:
    return Table.objects.filter(account_id=account_id, folded_name=folded_name, deleted_at=None).first()


def _find_metrics(account_id: int, folded_name: str) -> Table | None:
    """While metrics are on, or were and left something; made when it is asked for first, by whomever."""
    name = metrics_table(folded_name)
    if name is None:
        return None
    table = _find(account_id, name.lower())
    if not name.is_enabled(service_properties.get(account_id)):
        return table if table is not None and background.has_rows(table.pk) else None
    return table or _create_metrics(account_id, name)


def _create_metrics(account_id: int, name: str) -> Table | None:
    try:
        return _create(account_id, name)
    except IntegrityError:  # another process made it, or the account is gone
        return _find(account_id, name.lower())


def get(account_id: int, name: str) -> Table:
    """Get Table, by its name in any letter case."""
    table = find(account_id, fold_table_name(name))
    if table is None:
        raise ResourceNotFound
    return table


def create(account_id: int, name: str) -> Table:
    """Create Table: the name and the relation, or neither."""
    folded = fold_table_name(name)
    if is_analytics_name(folded):
        raise InvalidResourceName
    try:
        return _create(account_id, name)
    except IntegrityError:
        if find(account_id, folded) is None:  # it is the account that is gone
            raise ServerBusy from None
        raise TableAlreadyExists from None


@transaction.atomic
def _create(account_id: int, name: str) -> Table:
    table = Table.objects.create(account_id=account_id, name=name, folded_name=name.lower())
    sql.execute(relations.create(table.pk))
    notify("tables")
    return table


def delete(account_id: int, name: str) -> None:
    """Delete Table: at once for everybody; its space is given back by reap."""
    folded = fold_table_name(name)
    table = find(account_id, folded)
    if table is None:
        raise ResourceNotFound
    if is_analytics_name(folded):
        raise InsufficientAccountPermissions  # [inferred]
    # a token of one of its policies must not open, for a moment, a new table of this name
    has_policies = StoredAccessPolicy.objects.filter(table=table).exists()
    with heeded() if has_policies else transaction.atomic():
        _delete(table.pk)


def _delete(pk: int) -> None:
    table = Table.objects.select_for_update().filter(pk=pk, deleted_at=None).first()
    if table is None:
        raise ResourceNotFound
    table.deleted_at = timezone.now()
    table.save(update_fields=("deleted_at",))
    # a server that has not heard yet finds no relation of that name, rather than one that nobody will read
    sql.execute(relations.bury(table.pk))
    notify("tables")


def query(account_id: int, query: TableQuery) -> tuple[list[str], str | None]:
    """Query Tables: names as created, and the folded name the next page starts with."""
    rows = (
        Table.objects.own()
        .filter(account_id=account_id, folded_name__gte=query.start)
        .order_by("folded_name")
        .values_list("name", "folded_name")
    )
    if query.filter is None:
        found = list(rows[: query.top + 1])
    else:
        wanted = query.filter
        found = [row for row in rows.iterator() if matches_table(wanted, row[1])][: query.top + 1]
    # a page of nothing is the end, as it is for entities
    following = found[query.top][1] if 0 < query.top < len(found) else None
    return [name for name, _ in found[: query.top]], following


_COUNTED: Final = 2000  # entities; a larger table is estimated


@dataclass(frozen=True, slots=True)
class Overview:
    """A table as people list it; ``entities`` is an estimate unless it is exact, ``size`` are bytes on the disk."""

    name: str
    created_at: datetime
    entities: int
    is_exact: bool
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    tables: list[Overview]
    total: int  # of those that match
    next: str | None  # the folded name the next page starts with


def overview(account_id: int, *, containing: str = "", start: str = "", top: int = 100) -> Listing:
    """The tables whose name contains a text in any letter case, by name."""
    # tables have ASCII names, so that lower() means the same in every language
    matching = Table.objects.own().filter(account_id=account_id, folded_name__contains=containing.lower())
    rows = list(matching.filter(folded_name__gte=start).order_by("folded_name")[: top + 1])
    return Listing(
        _overviews(rows[:top]), matching.count(), rows[top].folded_name if len(rows) > top else None
    )


def describe(table: Table) -> Overview:
    return _overviews([table])[0]


def _overviews(rows: Sequence[Table]) -> list[Overview]:
    """Small tables are counted: of those the statistics know nothing yet."""
    sizes = background.sizes_of([row.pk for row in rows])
    counts = _count([pk for pk, size in sizes.items() if size.rows < _COUNTED])
    return [_overview(row, sizes.get(row.pk, background.Size(0, 0)), counts.get(row.pk)) for row in rows]


def _count(table_ids: Sequence[int]) -> dict[int, int]:
    """The tables that are as small as they seem."""
    if not table_ids:
        return {}
    try:
        found = sql.run_in_lane(background.count_up_to(table_ids, _COUNTED))
    except (TableNotFound, Canceled):  # one was deleted just now, or the database is busy
        return {}
    return {table_id: count for table_id, count in found.items() if count < _COUNTED}


def _overview(table: Table, size: background.Size, count: int | None) -> Overview:
    entities = size.rows if count is None else count
    return Overview(table.name, table.created_at, entities, count is not None, size.capacity)


def counts(account_ids: Iterable[int]) -> dict[int, int]:
    """The number of tables by account; an account without any is not among them."""
    own = Table.objects.own().filter(account_id__in=account_ids).order_by()
    return dict(own.values_list("account_id").annotate(number=Count("pk")))


def reap() -> int:
    """Gives back the space of deleted tables, of those that no other server is at; the number of them."""
    count = 0
    for pk in Table.objects.exclude(deleted_at=None).values_list("pk", flat=True):
        with transaction.atomic():
            if Table.objects.select_for_update(skip_locked=True).filter(pk=pk).first() is None:
                continue
            sql.execute(relations.drop(pk))
            Table.objects.filter(pk=pk).delete()
            count += 1
    return count
