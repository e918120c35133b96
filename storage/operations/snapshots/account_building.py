"""Accounts that are made with content: copies and branches. They refuse requests until they are complete.

An account whose maker died is removed: by the next request for the name, or by a background job.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, transaction

from storage.domain.access.actor import SERVER, Actor
from storage.domain.filters.query import EntityQuery
from storage.domain.service.activity import Verb
from storage.models import Account, Branch, Table
from storage.operations.accounts import account_settings, accounts, removal
from storage.operations.accounts.accounts import NewAccount
from storage.operations.accounts.refusals import busy
from storage.operations.activity import long_operations
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.activity.long_operations import Operation
from storage.operations.counting import totals
from storage.operations.snapshots.sides import SideTable
from storage.operations.tables import tables
from storage.sql import copying
from storage.sql import django as sql
from storage.sql.masking import Masking


@dataclass(frozen=True, slots=True)
class Original:
    """A property of a branch in which original values were found that should be masked."""

    table: str
    property: str
    entities: int


@dataclass(frozen=True, slots=True)
class BuiltAccount:
    """An account with the numbers of what it was made with. ``branch`` is None for a copy.

    A branch with ``originals`` stays frozen.
    """

    account: Account
    tables: int
    entities: int
    branch: Branch | None = None
    originals: Sequence[Original] = ()


def describe(account: Account, branch: Branch | None = None) -> BuiltAccount:
    """Return an account, which may be a branch, with estimates of what it has now."""
    found = totals.contents([account.pk]).get(account.pk)
    originals = [] if branch is None else [Original(*it) for it in branch.originals]
    return BuiltAccount(
        account, found.tables if found else 0, found.entities if found else 0, branch, originals
    )


def copy_table(
    source: SideTable, account: Account, query: EntityQuery, masking: Masking | None = None
) -> tuple[Table, int]:
    """Copy what a query finds in a table, with its Timestamps; return its number too."""

    def fill(target: str) -> int:
        return sql.walk(copying.fill(source.relation, target, query, masking), source.run)

    with transaction.atomic():
        return tables.create_filled(account, source.table, fill)


@contextmanager
def building(verb: Verb, name: str, new: NewAccount, *, by: Actor) -> Iterator[Operation]:
    """Create an account, as accounts.add does, for the block to fill and to ``release``; else it is removed.

    Raises AccountIsBusy if another request makes or deletes an account of this name.
    """
    with long_operations.holding_account(name) as lock:
        if lock is None:
            raise busy(name)
        _remove_abandoned(name)
        with invalidating_catalogs():
            account = accounts.add(name, replace(new, enabled=False), by=by)
            operation = Operation.begin(verb, account, lock, by=by)
        try:
            yield operation
        except BaseException:
            # without a connection, another process does it
            if connection.is_usable():
                remove(account)
            raise


def release(operation: Operation, *, enabled: bool, settings: Mapping[str, Any] | None = None) -> None:
    """Declare an account complete; without ``enabled`` it stays frozen, as one that a user froze."""
    changed = {**(settings or {}), **({"enabled": True} if enabled else {})}
    with invalidating_catalogs():
        operation.finish(None)
        if changed:
            account_settings.change(operation.account, by=operation.by, **changed)


def _remove_abandoned(name: str) -> None:
    """Remove the account of this name if it is incomplete; the caller holds the lock, so its maker is gone."""
    account = Account.objects.filter(name=name).first()
    if account is not None:
        remove(account)


def remove(account: Account) -> None:
    """Remove an account if it is incomplete."""
    if long_operations.unfinished(account) is not None:
        removal.remove(account.name, with_tables=True, by=SERVER, only=account)
