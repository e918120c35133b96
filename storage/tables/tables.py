"""Tables: create, change, delete, restore and query."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from storage.accounts import accounts
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.core import registry
from storage.core.relation_forms import LOCAL, RelationForm
from storage.core.subject import Hook
from storage.domain.access.actor import SERVER, Actor
from storage.domain.errors import (
    MethodNotAllowed,
    ResourceNotFound,
    ServerBusy,
    TableAlreadyExists,
)
from storage.domain.filters.query import TableQuery, matches_table, names_of_tables
from storage.domain.requests.strictness import TABLE_DELETION, Strictness
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_new_table_name, fold_table_name
from storage.models import Account, Activity, SnapshotTable, StoredAccessPolicy, Table, Tables
from storage.relations import table_relations
from storage.sql import background, moments, relations
from storage.sql import django as sql
from storage.sql import tables as statements
from storage.sql.attempts import attempting_each
from storage.sql.notify import notify_table
from storage.sql.statement import Statement
from storage.sql.tables import CreatedTable
from storage.tables import indexes
from storage.tables.subject import TableVerb

DELETED_TABLE_RETENTION: Final = timedelta(
    days=7
)  # how long people can restore a table they delete themselves
_MOST_KEPT: Final = 200  # deleted tables of an account
# tables; PostgreSQL looks through its memory once for all relations that a transaction drops, but locks each of them
_DROPPED_TOGETHER: Final = 100


class HasAccountName(Protocol):
    """An account, as a row or as requests know it."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...


def find(account: Account, folded_name: str) -> Table | None:
    return named(account, folded_name).first()


def listed(account: Account) -> list[Table]:
    """Return the tables of an account by name."""
    return list(Table.objects.existing().filter(account=account).order_by("folded_name"))


def names(account: Account, *, top: int | None = None) -> list[str]:
    """Return the first table names, sorted."""
    own = Table.objects.existing().filter(account=account).order_by("folded_name")
    return list(own.values_list("name", flat=True)[:top])


def named(account: Account | OuterRef, folded_name: str | OuterRef) -> Tables:
    """Select the existing table of a name; also usable in a subquery."""
    return Table.objects.filter(account=account, folded_name=folded_name, deleted_at=None)


def existing(account_id: int, folded_names: Collection[str]) -> set[str]:
    """Return the names among these that existing tables have."""
    tables = Table.objects.filter(account_id=account_id, folded_name__in=folded_names, deleted_at=None)
    return set(tables.values_list("folded_name", flat=True))


def is_name_of_deleted(account: Account, folded_name: str, since: datetime) -> bool:
    """Return whether the last table of a name was deleted after a time; False if there is one."""
    tables = Table.objects.filter(account=account, folded_name=folded_name)
    return (
        tables.filter(deleted_at__gt=since).exists() and not tables.filter(deleted_at__isnull=True).exists()
    )


def deleted_before(limit: datetime) -> Tables:
    """Select tables that were deleted before a time, in all accounts."""
    return Table.objects.filter(deleted_at__lt=limit)


def get(account: Account, name: str) -> Table:
    """Return a table by name, in any letter case except for Cosmos; raises ResourceNotFound."""
    table = find(account, fold_table_name(name, AccountKind(account.kind)))
    if table is None:
        raise ResourceNotFound
    return table


def get_or_new(account: Account, name: str) -> Table:
    """Return a table, or an unsaved one if it does not exist; raises StorageError for an invalid name."""
    table = find(account, fold_new_table_name(name, AccountKind(account.kind))) or Table(name=name)
    table.account = account
    return table


def create(
    account: Account,
    name: str,
    *,
    by: Actor = SERVER,
    is_checked: bool = False,
    description: str = "",
    tags: Sequence[str] = (),
) -> Table:
    """Create a table with its relation, in one transaction (Create Table)."""
    if not is_checked:
        accounts.writable(account)
    if form := _new_form(account):
        folded = fold_new_table_name(name, AccountKind(account.kind))
        described = {"description": description, "tags": list(tags), form.column: True}
        try:
            return _create_recorded(account, name, folded, by, **described)
        except IntegrityError:
            if not named(account, folded).exists():  # the account was deleted
                raise ServerBusy from None
            raise TableAlreadyExists from None
    statement = creation(account, name, by=by, description=description, tags=tags)
    with transaction.atomic():
        return Table.objects.get(pk=sql.run(statement).id)  # loading it makes its relation


def creation(
    account: HasAccountName, name: str, *, by: Actor, description: str = "", tags: Sequence[str] = ()
) -> Statement[CreatedTable]:
    """Return the statement that creates a local table; its relation is made when the table is loaded or used.

    Raises StorageError for an invalid name.
    """
    folded = fold_new_table_name(name, AccountKind(account.kind))
    note = activity.note(TableVerb.CREATE, by, account.name)
    return statements.create(account.id, name, folded, description, json.dumps(list(tags)), note)


def create_filled(
    account: Account, copied: Table | SnapshotTable, fill: Callable[[str], int]
) -> tuple[Table, int]:
    """Create a table, fill its relation by ``fill``, and then create its indexes."""
    kind = AccountKind(account.kind)
    table = _insert(
        account=account,
        name=copied.name,
        folded_name=fold_table_name(copied.name, kind),
        description=copied.description,
        tags=copied.tags,
        throughput=copied.throughput,
    )
    sql.execute(relations.create_bare(table.pk))
    count = fill(relations.relation_name(table.pk))
    sql.execute(relations.complete(table.pk, account.pk, kind))
    return table, count


_AT_PRESENT: Final = "UPDATE storage_table SET created_at = {present} WHERE id = %s RETURNING created_at"


def _insert(**fields: Any) -> Table:
    table = Table.objects.create(**fields)
    # by the time of the database, which the moments of the past are of
    [(table.created_at,)] = sql.fetch(_AT_PRESENT.format(present=moments.PRESENT_TIME), table.pk)
    return table


@sql.repeatable_on_nodes
def _create_recorded(account: Account, name: str, folded: str, by: Actor, **described: Any) -> Table:
    table = _insert(account_id=account.pk, name=name, folded_name=folded, **described)
    table_relations.create(table, AccountKind(account.kind))
    activity.record(TableVerb.CREATE, by, account=account, table=table)
    return table


def _new_form(account: Account) -> RelationForm | None:
    """Return the stored relation form for new tables of an account; None for the local one."""
    if not any(can_spread() for can_spread in registry.hooks(Hook.SPREADS_TABLES)):
        return None
    stored = Account.objects.filter(pk=account.pk).first()
    form = LOCAL if stored is None else registry.new_form_of(stored)
    return None if form is LOCAL else form


def delete(
    account: Account,
    name: str,
    *,
    by: Actor = SERVER,
    keep: timedelta | None = None,
    is_checked: bool = False,
    undoes: Activity | None = None,
    check: Callable[[Table], object] = lambda table: None,
) -> Activity:
    """Delete a table, effective at once; drop_expired_tables frees its space (Delete Table)."""
    folded = fold_table_name(name, AccountKind(account.kind))
    table = find(account, folded)
    if table is None:
        raise ResourceNotFound
    if not is_checked:
        accounts.writable(account)
    # a token of one of its policies must never open a new table of this name
    has_policies = StoredAccessPolicy.objects.filter(table=table).exists()

    def delete_recorded() -> Activity:
        kept = _delete(table, keep)
        check(table)
        return activity.record(
            TableVerb.DELETE,
            by,
            account=account,
            table=table,
            detail={"kept_days": kept.days} if kept else {},
            before={"description": table.description, "tags": table.tags},
            undoes=undoes,
        )

    if has_policies:
        with invalidating_catalogs():
            return delete_recorded()
    return sql.repeatable_on_nodes(delete_recorded)()


def _kept_with_history(table: Table) -> timedelta | None:
    """Return how long a table deleted by a client is kept; None if it is empty."""
    days = table.account.history_days
    if not days or not background.has_rows(table):
        return None
    # clients that make and delete tables all day may not fill the disk
    kept = _kept().filter(account_id=table.account_id).order_by("-deleted_at").values_list("pk", flat=True)
    longest, over = timedelta(days=days), list(kept[_MOST_KEPT - 1 :])
    form = table.form
    if form.longest_deleted is not None:
        longest = min(longest, form.longest_deleted)
    if form.most_deleted is not None:
        over += kept.filter(**{form.column: True})[form.most_deleted - 1 :]
    Table.objects.filter(pk__in=over).update(kept_until=timezone.now())
    return longest


def deletion(account: HasAccountName, name: str, *, by: Actor) -> Statement[bool]:
    """Return the statement that deletes a table, False if there is none or it needs ``delete``."""
    folded = fold_table_name(name, AccountKind(account.kind))
    note = activity.note(TableVerb.DELETE, by, account.name)
    return statements.delete(account.id, folded, _MOST_KEPT, note)


def _delete(table: Table, keep: timedelta | None) -> timedelta | None:
    """Soft-delete a table; return how long it is kept."""
    if table.form is LOCAL:
        is_deleted, kept = statements.delete_now(table.pk, keep, _MOST_KEPT)
        if not is_deleted:
            raise ResourceNotFound
        return kept
    stored = Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None).first()
    if stored is None:
        raise ResourceNotFound
    if keep is None:
        keep = _kept_with_history(stored)  # while it is locked: its relation goes with another deletion
    # a process with an old catalog must not find the relation: its writes would be lost
    table_relations.soft_delete(stored)
    # while the relation is locked, so that a reader of the past waits for it: see storage.sql.moments
    present = moments.present_time()
    kept_until = present + keep if keep else None
    Table.objects.filter(pk=table.pk).update(deleted_at=present, kept_until=kept_until)
    notify_table(table.account_id, table.folded_name)
    return keep


def deleted(account: Account) -> list[Table]:
    """Return the deleted tables that can be restored, latest first."""
    return list(_kept().filter(account=account).order_by("-deleted_at"))


def _kept() -> Tables:
    return Table.objects.filter(kept_until__gt=timezone.now())


@sql.repeatable_on_nodes
def restore(
    table: Table, *, by: Actor = SERVER, undoes: Activity | None = None, even_expired: bool = False
) -> Activity:
    """Restore a deleted table with its entities, policies and settings.

    Raises ResourceNotFound if its retention is over, unless ``even_expired`` and it is not dropped yet, and
    TableAlreadyExists if its name is taken.
    """
    deleted = Table.objects.exclude(deleted_at=None) if even_expired else _kept()
    stored = deleted.select_for_update().filter(pk=table.pk).first()
    if stored is None:
        raise ResourceNotFound
    account = accounts.writable(table.account)
    stored.deleted_at = stored.kept_until = None
    try:
        with transaction.atomic():
            stored.save(update_fields=("deleted_at", "kept_until"))
    except IntegrityError:
        raise TableAlreadyExists from None
    table_relations.restore(stored, AccountKind(account.kind))
    indexes.resume_pending(stored, by=by)
    return activity.record(TableVerb.RESTORE, by, account=account, table=stored, undoes=undoes)


@transaction.atomic
def change(
    table: Table,
    *,
    by: Actor = SERVER,
    description: str | None = None,
    tags: Sequence[str] | None = None,
    throughput: int | None = None,
    undoes: Activity | None = None,
) -> Activity | None:
    """Set the description, tags or throughput and update ``table``; return None if nothing changed.

    Raises ChangedSince if ``undoes`` is not the last change, and MethodNotAllowed for a throughput in an account that
    is not of the kind cosmos.
    """
    account = accounts.writable(table.account)
    if throughput:
        check_throughput(AccountKind(account.kind))
    stored = Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None).first()
    if stored is None:
        raise ResourceNotFound
    given = {
        "description": description,
        "tags": None if tags is None else list(tags),
        "throughput": throughput,
    }
    after = {field: value for field, value in given.items() if value is not None}
    before = {field: getattr(stored, field) for field in after}
    if undoes is not None and before != undoes.after:
        raise activity.ChangedSince
    if before == after:
        return None
    for field, value in after.items():
        setattr(stored, field, value)
        setattr(table, field, value)
    stored.save(update_fields=tuple(after))
    if throughput is not None:
        notify_table(stored.account_id, stored.folded_name)
    return activity.record(
        TableVerb.CHANGE, by, account=account, table=stored, before=before, after=after, undoes=undoes
    )


def check_throughput(kind: AccountKind) -> None:
    """Raise MethodNotAllowed for an account kind without throughput."""
    if kind is AccountKind.STORAGE:
        raise MethodNotAllowed


def query(account: Account, query: TableQuery, *, at: datetime | None = None) -> tuple[list[str], str | None]:
    """Return a page of table names as created, and the folded name that starts the next (Query Tables).

    With ``at``, the tables are those of a past time that are known by then.
    """
    existing = Table.objects.existing()
    if at is not None:
        is_kept = Q(deleted_at=None) | Q(deleted_at__gt=at)
        existing = Table.objects.filter(is_kept, created_at__lte=at)
    rows = (
        existing.filter(account=account, folded_name__gte=query.start)
        .order_by("folded_name")
        .values_list("name", "folded_name")
    )
    if query.filter is None:
        page_rows = list(rows[: query.top + 1])
    else:
        condition = query.filter
        lower, upper = names_of_tables(condition) if query.kind is AccountKind.STORAGE else ("", "")
        rows = rows.filter(folded_name__gte=lower) if lower else rows
        rows = rows.filter(folded_name__lte=upper) if upper else rows
        page_rows = [row for row in rows.iterator() if matches_table(condition, row[1], query.kind)][
            : query.top + 1
        ]
    # an empty page is the last one, as for entities
    following = page_rows[query.top][1] if 0 < query.top < len(page_rows) else None
    return [name for name, _ in page_rows[: query.top]], following


def counts(account_ids: Iterable[int]) -> dict[int, int]:
    """Return the number of tables by account, without empty accounts."""
    own = Table.objects.existing().filter(account_id__in=account_ids).order_by()
    return dict(own.values_list("account_id").annotate(number=Count("pk")))


def drop_expired_tables() -> int:
    """Drop soft-deleted tables beyond their retention, skipping those locked; return their number."""
    count = 0
    over = Table.objects.filter(Q(kept_until=None) | Q(kept_until__lte=timezone.now())).exclude(
        # a snapshot may need its entities
        Q(deleted_at=None)
        | Exists(SnapshotTable.objects.filter(table=OuterRef("pk"), is_copied=False))
        # its name is not free yet
        | Q(
            account__strictness=Strictness.AZURE,
            deleted_at__gt=timezone.now() - timedelta(seconds=TABLE_DELETION),
        )
    )
    count += statements.forget(list(over.filter(relation_pending=True).values_list("pk", flat=True)))
    local = list(over.local().order_by("pk").values_list("pk", flat=True))
    # a node that has the rows of one may be down; others need not wait for it
    alone = list(over.recording_apart().values_list("pk", flat=True))
    for start in range(0, len(local), _DROPPED_TOGETHER):
        together = local[start : start + _DROPPED_TOGETHER]
        try:
            count += _drop(together, over)
        except DatabaseError as error:
            if sql.is_lost(error):
                raise
            alone += together
    with attempting_each("Not every deleted table could be dropped") as attempt:
        for pk in alone:
            with attempt():
                count += _drop([pk], over)
    return count


@sql.repeatable_on_nodes
def _drop(pks: Collection[int], over: QuerySet[Table]) -> int:
    # skip those that were restored meanwhile
    tables = list(over.select_for_update(skip_locked=True, of=("self",)).filter(pk__in=pks))
    table_relations.drop(tables)
    Table.objects.filter(pk__in=[table.pk for table in tables]).delete()
    return len(tables)
