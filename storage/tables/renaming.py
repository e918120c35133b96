"""Renaming of tables: entities, policies, history and comments stay with the table, and the old name is free."""

from django.db import IntegrityError, transaction

from storage.accounts import accounts
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.core import registry
from storage.core.subject import Hook
from storage.domain.access.actor import SERVER, Actor
from storage.domain.errors import ResourceNotFound, TableAlreadyExists
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_new_table_name
from storage.models import Activity, Table
from storage.sql.notify import notify_table
from storage.tables.subject import TableVerb


def rename(table: Table, name: str, *, by: Actor = SERVER, undoes: Activity | None = None) -> Activity:
    """Give a table another name, effective at once; SAS tokens and clients of the old name no longer find it.

    Raises TableAlreadyExists for a taken name, StorageError for an invalid one, and ChangedSince if ``undoes`` is not
    its last renaming.
    """
    account = accounts.writable(table.account)
    folded = fold_new_table_name(name, AccountKind(account.kind))
    with invalidating_catalogs():
        stored = Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None).first()
        if stored is None:
            raise ResourceNotFound
        if undoes is not None and stored.name != undoes.table_name:
            raise activity.ChangedSince
        former, former_folded = stored.name, stored.folded_name
        stored.name, stored.folded_name = name, folded
        try:
            with transaction.atomic():
                stored.save(update_fields=("name", "folded_name"))
        except IntegrityError:
            raise TableAlreadyExists from None
        for move in registry.hooks(Hook.TABLE_RENAMED):
            move(stored, former_folded)
        for it in (former_folded, folded):
            notify_table(account.pk, it)
        done = activity.record(
            TableVerb.RENAME, by, account=account, table=stored, detail={"from": former}, undoes=undoes
        )
    table.name, table.folded_name = name, folded
    return done
