"""Tables of an account: control operations, with the ORM."""

from django.db import IntegrityError, transaction
from django.utils import timezone

from storage.domain.errors import ResourceNotFound, ServerBusy, TableAlreadyExists
from storage.domain.filters import matches_table
from storage.domain.names import fold_table_name
from storage.domain.query import TableQuery
from storage.models import Table
from storage.sql import django as sql
from storage.sql import relations
from storage.sql.notify import notify


def find(account_id: int, folded_name: str) -> Table | None:
    return Table.objects.filter(account_id=account_id, folded_name=folded_name, deleted_at=None).first()


def get(account_id: int, name: str) -> Table:
    """Get Table, by its name in any letter case."""
    table = find(account_id, fold_table_name(name))
    if table is None:
        raise ResourceNotFound
    return table


def create(account_id: int, name: str) -> Table:
    """Create Table: the name and the relation, or neither."""
    folded = fold_table_name(name)
    try:
        with transaction.atomic():
            table = Table.objects.create(account_id=account_id, name=name, folded_name=folded)
            sql.execute(relations.create(table.pk))
            notify("tables")
    except IntegrityError:
        if find(account_id, folded) is None:  # it is the account that is gone
            raise ServerBusy from None
        raise TableAlreadyExists from None
    return table


@transaction.atomic
def delete(account_id: int, name: str) -> None:
    """Delete Table: at once for everybody; its space is given back by reap."""
    fold_table_name(name)
    table = (
        Table.objects.select_for_update()
        .filter(account_id=account_id, folded_name=name.lower(), deleted_at=None)
        .first()
    )
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
        Table.objects.filter(account_id=account_id, deleted_at=None, folded_name__gte=query.start)
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
