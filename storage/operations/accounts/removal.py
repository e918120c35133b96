"""Deleting an account with its tables."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from storage.domain.access.actor import SERVER, Actor
from storage.domain.refusals import Reason
from storage.domain.service.account_settings import SETTINGS
from storage.domain.service.activity import Verb
from storage.models import Account, Snapshot, Table
from storage.operations.accounts.account_settings import to_json
from storage.operations.accounts.locking import lock_by_name
from storage.operations.accounts.refusals import AccountError, AccountHasTables, AccountIsProtected, busy
from storage.operations.activity import activity, long_operations
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.relations import history, snapshot_copies, table_relations

_DROPPED_TOGETHER: Final = 100  # tables; looking at locks takes longer the more a transaction has


def remove(name: str, *, with_tables: bool = False, by: Actor = SERVER, only: Account | None = None) -> None:
    """Delete an account; raises AccountError if it is protected, or if it has tables and may not lose them.

    With ``only``, another account that has taken its name stays. A process that dies meanwhile has deleted nothing, or
    another one completes the deletion.
    """

    def may_be_deleted(account: Account) -> bool:
        return with_tables and only in (None, account) and not (account.protected or account.read_only)

    with dropping_many_tables(name, may_be_deleted, by=by), invalidating_catalogs():
        remove_now(name, with_tables=with_tables, by=by, only=only)


@contextmanager
def dropping_many_tables(
    name: str, may_be_deleted: Callable[[Account], bool], *, by: Actor
) -> Iterator[None]:
    """Drop tables of an account in transactions of their own until few are left, before the block deletes it.

    PostgreSQL locks whatever a transaction drops, and has room for the locks of some thousand tables.
    """
    if not _has_many_tables(name):
        yield
        return
    with long_operations.holding_account(name) as lock:
        if lock is None:
            raise busy(name)
        while _has_many_tables(name):
            with invalidating_catalogs():
                account = lock_by_name(name)
                if not may_be_deleted(account):
                    break
                _drop_some_tables(account, lock, by)
        yield


def _has_many_tables(name: str) -> bool:
    return Table.objects.filter(account__name=name).count() > _DROPPED_TOGETHER


def _drop_some_tables(account: Account, lock: int, by: Actor) -> None:
    deletion = long_operations.Operation.resume(Verb.ACCOUNT_DELETE, account, lock, by=by)
    found = list(Table.objects.filter(account=account).order_by("pk")[:_DROPPED_TOGETHER])
    _drop(found)
    Table.objects.filter(pk__in=[table.pk for table in found]).delete()
    names = [table.name for table in found if table.is_own]
    deletion.save({"tables": [*deletion.detail.get("tables", ()), *names]})


def _drop(tables: Iterable[Table]) -> None:
    for table in tables:
        if table.deleted_at is None:
            table_relations.soft_delete(table)
        table_relations.drop(table)


def remove_now(name: str, *, with_tables: bool, by: Actor, only: Account | None = None) -> None:
    """Delete an account in the caller's transaction."""
    # also against new tables: waits for those being created
    Account.objects.select_for_update().filter(name=name).first()
    account = lock_by_name(name)
    if only not in (None, account):
        return
    if account.protected:
        raise AccountIsProtected(Reason.ACCOUNT_PROTECTED, account=name)
    names = list(Table.objects.own().filter(account=account).values_list("name", flat=True))
    if names and not with_tables:
        raise AccountHasTables(Reason.ACCOUNT_HAS_TABLES, account=name, number=len(names))
    if names and account.read_only:
        raise AccountError(Reason.READ_ONLY_ACCOUNT_HAS_TABLES, account=name, number=len(names))
    # deleted tables that could be restored included
    _drop(Table.objects.filter(account=account))
    for snapshot in Snapshot.objects.filter(account=account):
        snapshot_copies.drop_relations(snapshot)
    history.remove(account)
    before = to_json({field: getattr(account, field) for field in SETTINGS})
    dropped = long_operations.saved(Verb.ACCOUNT_DELETE, account).get("tables", ())
    activity.record(
        Verb.ACCOUNT_DELETE, by, account=account, before=before, detail={"tables": sorted([*dropped, *names])}
    )
    account.delete()
