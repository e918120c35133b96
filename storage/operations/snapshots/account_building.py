"""Accounts that are made with content: copies and branches. They refuse requests until they are complete.

An account whose maker died is removed: by the next request for the name, or by a background job.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from django.db import connection

from storage.domain.access.actor import SERVER, Actor
from storage.domain.service.activity import Verb
from storage.models import Account
from storage.operations.accounts import account_settings, accounts, removal
from storage.operations.accounts.accounts import NewAccount
from storage.operations.accounts.refusals import busy
from storage.operations.activity import long_operations
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.activity.long_operations import Operation


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


def release(operation: Operation, *, enabled: bool) -> None:
    """Declare an account complete; without ``enabled`` it stays frozen, as one that a user froze."""
    with invalidating_catalogs():
        operation.finish(None)
        if enabled:
            account_settings.change(operation.account, by=operation.by, enabled=True)


def _remove_abandoned(name: str) -> None:
    """Remove the account of this name if it is incomplete; the caller holds the lock, so its maker is gone."""
    account = Account.objects.filter(name=name).first()
    if account is not None:
        remove(account)


def remove(account: Account) -> None:
    """Remove an account if it is incomplete."""
    if long_operations.unfinished(account) is not None:
        removal.remove(account.name, with_tables=True, by=SERVER, only=account)
