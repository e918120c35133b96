"""Lifecycle of a table's relation: create, soft-delete, restore and drop, dispatched by its form."""

import logging
import re
from collections.abc import Iterable
from datetime import timedelta
from importlib import import_module
from typing import Final, Protocol, cast

from django.db import transaction
from django.db.models.functions import Now

from storage.core.relation_forms import Ability
from storage.domain.errors import NotImplemented
from storage.domain.values.kinds import AccountKind
from storage.models import Account, Table
from storage.sql import django as sql
from storage.sql import relations
from storage.sql import tables as statements
from storage.sql.attempts import attempting_each

logger = logging.getLogger(__name__)

_PENDING: Final = timedelta(seconds=5)  # tables of tests are often deleted sooner


class RelationOperations(Protocol):
    """Operations on relations of a form, implemented by its module; each may raise ServerBusy."""

    def create(self, table: Table, kind: AccountKind) -> None: ...

    def soft_delete(self, table: Table) -> None: ...

    def restore(self, table: Table, kind: AccountKind) -> None: ...

    def drop(self, table: Table) -> None: ...


def _operations_of(table: Table) -> RelationOperations | None:
    """Return the operations of a table's relation form; None for the local form."""
    path = table.form.operations
    return cast("RelationOperations", import_module(path)) if path else None


def refuse_without_images(table: Table) -> None:
    """Refuse operations with images on a form that does not support them; raises NotImplemented."""
    if reason := table.form.lacks.get(Ability.IMAGES):
        raise NotImplemented(reason.of(table=table.name))


def create(table: Table, kind: AccountKind) -> None:
    """Create the relation of a new table; raises ServerBusy if another server it needs is unreachable."""
    if operations := _operations_of(table):
        operations.create(table, kind)
    else:
        sql.execute(relations.create(table.pk, table.account_id, kind))


def make(table: Table) -> None:
    """Make the relation of a table if it is pending and the table is not deleted."""
    kind = Account.objects.values_list("kind", flat=True).get(pk=table.account_id)
    sql.run(statements.make(table.pk, table.account_id, AccountKind(kind)))


def make_pending() -> None:
    """Make the relations that tables still lack some seconds after their creation."""
    pending = Table.objects.existing().filter(relation_pending=True, created_at__lt=Now() - _PENDING)
    with attempting_each("Not every table got its relation") as attempt:
        for table_id in list(pending.order_by("pk").values_list("pk", flat=True)):
            with attempt():
                Table.objects.filter(pk=table_id).first()  # loading it does


def soft_delete(table: Table) -> None:
    """Soft-delete the relation by renaming it; ``table`` may be marked as deleted already."""
    if operations := _operations_of(table):
        operations.soft_delete(table)
    else:
        sql.execute(relations.soft_delete(table.pk))


def restore(table: Table, kind: AccountKind) -> None:
    """Revert ``soft_delete``."""
    if table.relation_pending:
        make(table)
    elif operations := _operations_of(table):
        operations.restore(table, kind)
    else:
        sql.execute(relations.restore(table.pk, table.account_id, kind))


def drop(tables: Iterable[Table]) -> None:
    """Drop soft-deleted relations."""
    local = []
    for table in tables:
        if operations := _operations_of(table):
            operations.drop(table)
        elif not table.relation_pending:
            local.append(table.pk)
    if local:
        sql.execute(relations.drop(local))


def incomplete() -> list[Table]:
    """Return the tables that lack their function, as a server of an older version created or restored them."""
    found = relations.find_without_function()
    return list(Table.objects.filter(pk__in=found).select_related("account").order_by("pk")) if found else []


def complete_all() -> None:
    """Create the missing functions of all tables."""
    with attempting_each("Not every table could be completed") as attempt:
        for table_id in relations.find_without_function():
            with attempt():
                complete(table_id)


def complete(table_id: int) -> bool:
    """Create a table's function if it is missing; return whether it was."""
    if not relations.find_without_function(table_id):
        return False
    with transaction.atomic():
        # several processes may find it at once; it may be deleted meanwhile
        tables = Table.objects.select_for_update(of=("self",)).select_related("account")
        table = tables.filter(pk=table_id, deleted_at=None).local().first()
        if table is not None and relations.find_without_function(table_id):
            kind = AccountKind(table.account.kind)
            sql.execute(relations.create_function(table.pk, table.account_id, kind))
            logger.warning(
                "An older version of Tablero has created or restored the table %s of the account %s without the"
                " function for changes, which it has now. Stop servers of that version.",
                table.name,
                table.account.name,
            )
    return True


def describe(relation: str) -> str:
    """Return the table of a relation for messages to operators; other relations by their own name."""
    match = re.fullmatch("(?:deleted_)?entity_([0-9]+)(?:_long)?", relation)
    table = Table.objects.select_related("account").filter(pk=int(match[1])).first() if match else None
    return f"the relation {relation}" if table is None else f"the table {table.account.name}/{table.name}"
