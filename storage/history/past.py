"""Choice of the relations that hold a table's past state, as far back as its account keeps changes.

A moment given by its time is closed before it is read: later writes get later Timestamps, and writes that
might still get an earlier one are awaited. So repeated reads of a moment return the same.
"""

import time
from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.db.models import Q

from storage.core.relation_forms import RelationForm
from storage.domain.entities.moments import Moment
from storage.domain.errors import OutOfRangeInput, ServerBusy, TableNotFound
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_datetime
from storage.models import Account, Table
from storage.relations.record import kept_history
from storage.sql import django as sql
from storage.sql import moments
from storage.sql.forms import history_of
from storage.sql.past import Past as Past
from storage.sql.past import as_of
from storage.sql.record import Record
from storage.sql.relations import deleted_name, relation_of
from storage.sql.snapshots import SLACK
from storage.sql.statement import Statement

T = TypeVar("T")

_PATIENCE: Final = 3.0  # seconds for writes that have begun before a moment
_PAUSES: Final = (0.002, 0.005, 0.01, 0.02, 0.05)  # seconds between looks at them


def kept_since(account: Account) -> datetime | None:
    """Return the time since which all changes of an account are kept; None without a history."""
    return kept_history(account.pk).since


def find(table: Table, moment: Moment) -> Past:
    """Return the source of a table's entities as of a moment; raises OutOfRangeInput."""
    at = to_datetime(moment.ticks)
    kept = kept_history(table.account_id)
    if kept.since is None:
        raise OutOfRangeInput(Reason.NO_HISTORY.of())
    if at < kept.since:
        raise OutOfRangeInput(Reason.HISTORY_BEGINS.of(since=_write(kept.since)))
    if at < table.created_at or (table.deleted_at is not None and at >= table.deleted_at):
        raise TableNotFound
    if table.changes_since is not None:
        _refuse_before(table, moment, table.changes_since)
    if not table.form.capabilities.records_in_account:
        return _find_apart(table, moment)
    past = Past(table.pk, source_of(table), kept.after(at), moment)
    if moment.snapshot is None:
        _close(past)
    return past


def _refuse_before(table: Table, moment: Moment, since: datetime) -> None:
    if to_datetime(moment.ticks) < since:
        raise OutOfRangeInput(Reason.TABLE_HISTORY_BEGINS.of(table=table.name, since=_write(since)))


def _find_apart(table: Table, moment: Moment) -> Past:
    """Return the past of a table with its own history, which begins when it got its form."""
    since: datetime | None = getattr(table, table.form.since_column)
    if since is None:
        raise ServerBusy  # it will be known in a minute
    _refuse_before(table, moment, since)
    close_everywhere(table.form, moment, table.pk)
    relation = relation_of(table)
    return Past(table.pk, source_of(table), Record(), moment, history_of(relation))


_closed: dict[int, int] = {}  # the last moment that was closed on all nodes, by table


def close_everywhere(form: RelationForm, moment: Moment, table_id: int) -> None:
    """Ensure that a moment of a table whose rows are on several nodes can no longer change."""
    if moment.ticks <= _closed.get(table_id, 0):
        return
    assert form.extension is not None
    if moment.ticks > sql.run(moments.present()):
        # the clock of a node may be ahead of this one
        present = sql.run(moments.present_everywhere(form.extension))
        if present is None:
            raise ServerBusy
        if moment.ticks > present:
            raise OutOfRangeInput(Reason.FUTURE.of(moment=moment))
    statement = moments.close_everywhere(form.extension, moment, table_id)
    deadline, pauses = time.monotonic() + _PATIENCE, iter(_PAUSES)
    while running := sql.run(statement):
        if time.monotonic() > deadline:
            raise ServerBusy(Reason.MOMENT_NOT_CLOSED.of(moment=moment))
        time.sleep(next(pauses, _PAUSES[-1]))
    if running is None:
        raise ServerBusy(Reason.NODE_IS_DOWN.of())
    _closed[table_id] = moment.ticks


def _close(past: Past) -> None:
    """Ensure that reads as of a time can no longer change."""
    moment = past.moment
    running = sql.run(moments.close(moment, past.source))
    if running is None:
        # an entity that was changed often while the clock was behind has a Timestamp ahead of it
        running = sql.run(moments.close(moment, past.source, sql.run(moments.latest(past.record))))
    if running is None:
        raise OutOfRangeInput(Reason.FUTURE.of(moment=moment))
    deadline, pauses = time.monotonic() + _PATIENCE, iter(_PAUSES)
    while running and sql.run(moments.are_running(running)):
        if time.monotonic() > deadline:
            raise ServerBusy(Reason.MOMENT_NOT_CLOSED.of(moment=moment))
        time.sleep(next(pauses, _PAUSES[-1]))


def present() -> Moment:
    """Return the present moment of the database; later changes may still get earlier Timestamps."""
    return Moment(sql.run(moments.present()))


def closed_present() -> Moment:
    """Return a closed present moment: all later changes get later Timestamps."""
    return Moment(sql.run(moments.close_present()))


def changes_since(table: Table, moment: Moment) -> Record | None:
    """Return the record of the changes after a moment's snapshot; None if it is incomplete."""
    kept = kept_history(table.account_id)
    if kept.since is None or not table.form.capabilities.has_past:
        return None
    # the time of the moment is earlier than its snapshot, by this at least
    at = to_datetime(moment.ticks) + timedelta(seconds=SLACK)
    # the moment may be earlier than a young account, by as much as the oldest transaction that runs
    is_missing = at < kept.since and not kept.is_complete(table.account)
    if is_missing or (table.changes_since is not None and at < table.changes_since):
        return None
    return kept.after(at)


def find_by_name(
    account: Account, name: str, moment: Moment, *, includes_deleted: bool = True
) -> tuple[Table, Past]:
    """Return a table by its name at a moment, as ``find`` does; raises TableNotFound."""
    table = find_table(account, name, moment)
    if table.deleted_at is not None and not includes_deleted:
        raise TableNotFound
    return table, find(table, moment)


def run_as_of(statement: Statement[T], past: Past | None, *, limit: timedelta | None = None) -> T:
    """Run a statement that reads entities of the present or a past moment."""
    return sql.run_in_lane(statement if past is None else as_of(statement, past), limit=limit)


def source_of(table: Table) -> str:
    """Return the relation of a table's entities, which is renamed if the table is deleted."""
    relation = relation_of(table)
    return relation if table.deleted_at is None else deleted_name(relation)


def find_table(account: Account, name: str, moment: Moment) -> Table:
    """Return the table with a name at a moment, even if deleted since; raises TableNotFound."""
    at = to_datetime(moment.ticks)
    table = Table.objects.filter(
        Q(deleted_at=None) | Q(deleted_at__gt=at),
        account=account,
        folded_name=fold_table_name(name, AccountKind(account.kind)),
        created_at__lte=at,
    ).first()
    if table is None:
        raise TableNotFound
    return table


def find_last(account: Account, name: str) -> Table:
    """Return the last deleted table of a name within the history; raises TableNotFound."""
    since = kept_since(account)
    if since is None:
        raise TableNotFound
    table = (
        Table.objects.filter(
            account=account,
            folded_name=fold_table_name(name, AccountKind(account.kind)),
            deleted_at__gt=since,
        )
        .order_by("-deleted_at")
        .first()
    )
    if table is None:
        raise TableNotFound
    return table


def _write(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
