"""Operations of several transactions, so that what a killed process leaves is found, and ended by another one.

An operation is a row that is committed before its first effect and deleted with its last. Its process holds an
advisory lock of PostgreSQL in the session that does the work. A row whose lock is free was abandoned:
storage.runtime.recovery removes what such an operation left, finishes it, or records what it has done.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from zlib import crc32

from django.db import connection, transaction

from storage.domain.access.actor import Actor, dump_actor, load_actor
from storage.domain.errors import ServerBusy
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, LongOperation, Table
from storage.operations.activity import activity
from storage.operations.activity.attempts import attempting_each
from storage.sql.background import try_lock

LOCKS: Final = 0x7461626F  # class of the advisory locks
# until they end, the account is incomplete
_OF_WHOLE_ACCOUNTS: Final = (Verb.BRANCH_CREATE, Verb.ACCOUNT_CREATE, Verb.ACCOUNT_DELETE)


@dataclass(slots=True)
class Operation:
    """An operation in progress. ``row`` is None inside a transaction of the caller, which is all or nothing."""

    verb: Verb
    account: Account
    by: Actor
    undoes: Activity | None = None
    row: LongOperation | None = None

    @classmethod
    def begin(
        cls, verb: Verb, account: Account, lock: int, *, by: Actor, undoes: Activity | None = None
    ) -> Self:
        row = LongOperation.objects.create(
            verb=verb, account=account, lock=lock, actor=dump_actor(by), undoes=undoes
        )
        return cls(verb, account, by, undoes, row)

    @classmethod
    def resume(cls, verb: Verb, account: Account, lock: int, *, by: Actor) -> Self:
        """Take over the operation that a process which is gone has left, or begin one; while the lock is held."""
        row = LongOperation.objects.filter(account=account, verb=verb).first()
        return cls.begin(verb, account, lock, by=by) if row is None else cls(verb, account, by, None, row)

    @property
    def detail(self) -> Mapping[str, Any]:
        """What was saved."""
        found: Mapping[str, Any] = {} if self.row is None else self.row.detail
        return found

    def save(self, detail: Mapping[str, Any], table: Table | None = None) -> None:
        """Store what was done so far; in the transaction that does it, so that both are true or neither."""
        if self.row is not None:
            self.row.detail, self.row.table = activity.in_json(detail), table
            self.row.save(update_fields=("detail", "table"))

    @transaction.atomic
    def finish(self, detail: Mapping[str, Any] | None, table: Table | None = None) -> Activity | None:
        """End the operation, and record ``detail`` in the activity log unless it is empty."""
        if self.row is not None:
            LongOperation.objects.filter(pk=self.row.pk).delete()
        if not detail:
            return None
        return activity.record(
            self.verb, self.by, account=self.account, table=table, detail=detail, undoes=self.undoes
        )


@contextmanager
def running(
    verb: Verb, account: Account, *, by: Actor, undoes: Activity | None = None
) -> Iterator[Operation]:
    """Run a block that calls Operation.save in its transactions, and Operation.finish at the end.

    If the block does not reach its end, the activity log records what was saved, as interrupted.
    """
    if connection.in_atomic_block:
        yield Operation(verb, account, by, undoes)
        return
    lock = secrets.randbits(31)
    with try_lock(LOCKS, lock) as is_free:
        if not is_free:
            raise ServerBusy  # by chance
        operation = Operation.begin(verb, account, lock, by=by, undoes=undoes)
        try:
            yield operation
        except BaseException:
            # without a connection, another process records it
            if operation.row is not None and connection.is_usable():
                record_interruption(operation.row)
            raise


@transaction.atomic
def record_interruption(row: LongOperation) -> None:
    """End an operation that was interrupted, and record what it has done, if anything."""
    found = LongOperation.objects.select_for_update().select_related("account").filter(pk=row.pk).first()
    if found is None:
        return
    undoes = Activity.objects.filter(pk=found.undoes_id or 0).first()
    if undoes is not None and activity.is_undone(undoes):
        undoes = None  # by another request
    operation = Operation(Verb(found.verb), found.account, load_actor(found.actor), undoes, found)
    table = Table.objects.filter(pk=found.table_id or 0).first()
    operation.finish({**found.detail, "interrupted": True} if found.detail else None, table)


# operations on accounts as a whole


def lock_of(name: str) -> int:
    """Return the second key of the lock for making or deleting an account of this name."""
    return crc32(name.encode()) - 2**31


@contextmanager
def holding_account(name: str) -> Iterator[int | None]:
    """Hold the lock for making or deleting an account of this name; yields None if another process holds it."""
    lock = lock_of(name)
    with try_lock(LOCKS, lock) as is_alone:
        yield lock if is_alone else None


def unfinished(account: Account) -> LongOperation | None:
    """Return the operation that makes or deletes an account as a whole; None if it is complete."""
    return LongOperation.objects.filter(account=account, verb__in=_OF_WHOLE_ACCOUNTS).first()


def saved(verb: Verb, account: Account) -> Mapping[str, Any]:
    """Return what an operation on an account has done so far."""
    row = LongOperation.objects.filter(account=account, verb=verb).first()
    return {} if row is None else row.detail


# what was abandoned


def end_abandoned(end: Callable[[LongOperation], None]) -> None:
    """End the operations whose processes are gone. One that fails does not stop the others."""
    with attempting_each("Not every abandoned operation could be ended") as attempt:
        for row in LongOperation.objects.order_by("pk"):
            with attempt(), try_lock(LOCKS, row.lock) as is_abandoned:
                # it may have ended before the lock was free
                found = LongOperation.objects.select_related("account").filter(pk=row.pk).first()
                if is_abandoned and found is not None:
                    end(found)
