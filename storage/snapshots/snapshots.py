"""Snapshots: immutable states of an account to browse, restore, compare and branch from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from storage.access import policies
from storage.accounts import locking, quotas
from storage.accounts.quotas import Allowance
from storage.activity import activity
from storage.core.quotas import SNAPSHOTS
from storage.core.relation_forms import Ability
from storage.domain.access.actor import SERVER, Actor
from storage.domain.errors import ServerBusy, TableNotFound
from storage.domain.refusals import Missing, Reason, Refused
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.stored import read_member
from storage.history import retention
from storage.models import Account, Activity, Snapshot, SnapshotSchedule, SnapshotTable, Table
from storage.relations import history, snapshot_copies
from storage.snapshots.schedule import (
    AUTOMATIC_LIFETIME,
    Schedule,
    SnapshotReason,
    is_snapshot_name,
    numbered_name,
)
from storage.snapshots.subject import SnapshotVerb
from storage.sql import django as sql
from storage.sql import snapshots as statements
from storage.sql.attempts import attempting_each
from storage.sql.background import Size, count_up_to, sizes_of

COUNTED: Final = 10_000  # entities of a table that are counted rather than estimated
COUNTED_TABLES: Final = 500  # tables whose entities are counted; for others the number is estimated
AUTOMATIC_LIMIT: Final = 20  # snapshots of an account, taken before restores and deletions
_ATTEMPTS: Final = 100  # for a name that is not taken
_TRIES: Final = 5  # while tables are deleted
_LONGEST_INTERVAL: Final = timedelta(days=8)  # between two snapshots of a schedule, and a change of the clock


class SnapshotError(Refused):
    """An operation on a snapshot is refused."""


class SnapshotExists(SnapshotError):
    """The name is taken."""


class SnapshotLimitReached(SnapshotError):
    """The account has too many snapshots, or they are too large."""


class SnapshotNotFound(SnapshotError, Missing):
    """There is no snapshot of this name."""


# taking


def take(
    account: Account,
    name: str,
    *,
    by: Actor = SERVER,
    tables: Iterable[str] | None = None,
    expires_at: datetime | None = None,
) -> Snapshot:
    """Take a snapshot of an account, or of the given tables; without ``expires_at`` it never expires.

    Raises SnapshotExists, SnapshotLimitReached, and SnapshotError for an invalid name or unknown tables.
    """
    _check_name(name)
    snapshot = _list_again(lambda: _take_listed(account, name, by, tables, expires_at))
    _delete_beyond_limits(snapshot, by)
    return snapshot


def _list_again(take_listed: Callable[[], Snapshot]) -> Snapshot:
    """Take a snapshot of the listed tables, retrying if one is deleted in between."""
    for _ in range(_TRIES):
        try:
            return take_listed()
        except TableNotFound:
            pass
    raise ServerBusy


def _take_listed(
    account: Account, name: str, by: Actor, tables: Iterable[str] | None, expires_at: datetime | None
) -> Snapshot:
    chosen = _own_tables(account)
    if tables is not None:
        folded = {fold_table_name(table, AccountKind(account.kind)) for table in tables}
        chosen = [table for table in chosen if table.folded_name in folded]
        missing = folded - {table.folded_name for table in chosen}
        if missing:
            raise SnapshotError(Reason.NO_TABLE_FOR_SNAPSHOT, table=min(missing), account=account.name)
    _refuse_without_past(chosen)
    _check_limits(account, added=chosen)
    try:
        return _take(account, name, chosen, by, SnapshotReason.USER, expires_at, is_whole=tables is None)
    except IntegrityError:
        if find(account, name) is None:
            raise ServerBusy from None  # the account was deleted
        raise SnapshotExists(Reason.SNAPSHOT_EXISTS, snapshot=name) from None


def _delete_beyond_limits(snapshot: Snapshot, by: Actor) -> None:
    """Delete a new snapshot again if concurrent ones have exceeded a limit with it, and raise the error."""
    reached = None
    with transaction.atomic():
        account = locking.lock(snapshot.account)
        try:
            _check_limits(account)
        except SnapshotLimitReached as error:
            reached = error
            delete(snapshot, by=by)
    if reached is not None:
        raise reached


def _check_limits(account: Account, *, added: Sequence[Table] | None = None) -> None:
    """Raise SnapshotLimitReached if an account exceeds its limits, including a snapshot of ``added`` tables."""
    number, most = allowance(account)
    if number + (added is not None) > most:
        raise SnapshotLimitReached(Reason.TOO_MANY_SNAPSHOTS, account=account.name, number=number, most=most)
    size = _copied_bytes(account)
    if added and not history.is_recorded(account):
        size += sum(it.capacity for it in sizes_of([table.pk for table in added]).values())
    if size > bytes_limit():
        raise SnapshotLimitReached(
            Reason.SNAPSHOTS_TOO_LARGE, account=account.name, size=size >> 20, most=bytes_limit() >> 20
        )


def allowance(account: Account) -> Allowance:
    """Return the number of user snapshots of an account and the quota."""
    number = Snapshot.objects.filter(account=account, reason=SnapshotReason.USER).count()
    return Allowance(number, quotas.limit(SNAPSHOTS, account))


def bytes_limit() -> int:
    """Return the size limit in bytes for copied snapshots of an account."""
    limit: int | None = settings.SNAPSHOT_BYTES
    return limit or retention.share_of_disk()


def storage_used(account: Account) -> tuple[int, int]:
    """Return the bytes of an account's copied snapshots and their limit."""
    return _copied_bytes(account), bytes_limit()


def _copied_bytes(account: Account) -> int:
    copied = SnapshotTable.objects.filter(snapshot__account=account, is_copied=True)
    counted = copied.exclude(snapshot__reason=SnapshotReason.BRANCH)
    found: int = counted.aggregate(size=Sum("size", default=0))["size"]
    return found


def _drop_old_automatic(account: Account) -> None:
    """Delete the oldest automatic snapshots beyond the limits of number and size."""
    reasons = (SnapshotReason.RESTORE, SnapshotReason.DELETION)
    automatic = Snapshot.objects.filter(account=account, reason__in=reasons).order_by("-taken_at", "-pk")
    for place, snapshot in enumerate(automatic):
        if place >= AUTOMATIC_LIMIT or (place and _copied_bytes(account) > bytes_limit()):
            delete(snapshot)


def take_automatic(
    account: Account,
    name: str,
    reason: SnapshotReason,
    *,
    by: Actor = SERVER,
    lifetime: timedelta | None = AUTOMATIC_LIFETIME,
    save: Callable[[Snapshot], object] = lambda snapshot: None,
) -> Snapshot:
    """Take an automatic snapshot; a number is appended to a taken name."""
    expires_at = timezone.now() + lifetime if lifetime is not None else None

    def take_of(own: Sequence[Table]) -> Snapshot:
        # over several nodes there is no moment to take it of; the others are better than nothing
        with_past = [table for table in own if table.form.capabilities.has_past]
        is_whole = len(with_past) == len(own)
        for number in range(1, _ATTEMPTS):
            free = numbered_name(name, number)
            if find(account, free) is None:
                try:
                    return _take(
                        account, free, with_past, by, reason, expires_at, is_whole=is_whole, save=save
                    )
                except IntegrityError:
                    continue
        raise ServerBusy

    taken = _list_again(lambda: take_of(_own_tables(account)))
    _drop_old_automatic(account)
    return taken


def _take(
    account: Account,
    name: str,
    tables: Sequence[Table],
    by: Actor,
    reason: SnapshotReason,
    expires_at: datetime | None,
    *,
    is_whole: bool = True,
    save: Callable[[Snapshot], object] = lambda snapshot: None,
) -> Snapshot:
    is_recorded = history.is_recorded(account)
    # without history, all tables are copied as they are at one moment
    with transaction.atomic() if is_recorded else sql.repeatable_read():
        moment = sql.run(statements.take_moment())
        assert moment.snapshot is not None
        snapshot = Snapshot.objects.create(
            account=account,
            name=name,
            reason=reason,
            is_whole=is_whole,
            taken_at=timezone.now(),
            expires_at=expires_at,
            visible=moment.snapshot,
            ticks=moment.ticks,
            service_properties=Account.objects.values_list("service_properties", flat=True).get(
                pk=account.pk
            ),
            actor_kind=by.kind,
            actor=sql.storable_text(by.name, 256),
        )
        _add_tables(snapshot, tables)
        # one may have got another form since
        _refuse_without_past(Table.objects.filter(pk__in=[table.pk for table in tables]))
        if not is_recorded:
            snapshot_copies.copy(snapshot)
        if reason in (SnapshotReason.USER, SnapshotReason.SCHEDULE):
            activity.record(SnapshotVerb.TAKE, by, account=account, detail={"snapshot": name})
        save(snapshot)
    return snapshot


def _refuse_without_past(tables: Iterable[Table]) -> None:
    for table in tables:
        if reason := table.form.lacks.get(Ability.SNAPSHOT):
            raise SnapshotError(reason, table=table.name)


def _add_tables(snapshot: Snapshot, tables: Sequence[Table]) -> None:
    sizes = sizes_of([table.pk for table in tables])
    # counting locks the table and its indexes, and PostgreSQL has room for the locks of some thousand tables
    counted = [table.pk for table in tables[:COUNTED_TABLES]]
    counts = sql.run(count_up_to(counted, COUNTED)) if counted else {}
    stored = policies.written(tables)
    SnapshotTable.objects.bulk_create(
        SnapshotTable(
            snapshot=snapshot,
            table=table,
            name=table.name,
            folded_name=table.folded_name,
            description=table.description,
            tags=table.tags,
            throughput=table.throughput,
            policies=stored[table.pk],
            entities=_rows(counts.get(table.pk), sizes.get(table.pk)),
            size=sizes[table.pk].capacity if table.pk in sizes else 0,
        )
        for table in tables
    )


def _rows(counted: int | None, size: Size | None) -> int:
    """Return the number of entities, estimated if there are many or they were not counted."""
    if counted is None:
        return 0 if size is None else size.rows
    return counted if counted < COUNTED or size is None else max(counted, size.rows)


def _own_tables(account: Account) -> list[Table]:
    return list(Table.objects.existing().filter(account=account).order_by("folded_name"))


def _check_name(name: str) -> None:
    if not is_snapshot_name(name):
        raise SnapshotError(Reason.SNAPSHOT_NAME, snapshot=name)


# reading


def find(account: Account, name: str) -> Snapshot | None:
    if not is_snapshot_name(name):
        return None
    return Snapshot.objects.filter(account=account, name=name).first()


def find_listed(account: Account, name: str) -> Snapshot | None:
    """Return a snapshot by its name, unless it is the origin of a branch, which no list shows."""
    snapshot = find(account, name)
    return None if snapshot is None or snapshot.reason == SnapshotReason.BRANCH else snapshot


def get(account: Account, name: str) -> Snapshot:
    """Return a snapshot by its name; raises SnapshotNotFound."""
    snapshot = find(account, name)
    if snapshot is None:
        raise SnapshotNotFound(Reason.NO_SNAPSHOT, account=account.name, snapshot=name)
    return snapshot


def names(account: Account, top: int) -> list[str]:
    """Return the names of the latest snapshots, including origins of branches."""
    return list(_latest_first(account).values_list("name", flat=True)[:top])


def latest(account: Account) -> Snapshot | None:
    """Return the latest snapshot, including the origin of a branch."""
    return _latest_first(account).first()


def _latest_first(account: Account) -> QuerySet[Snapshot]:
    return Snapshot.objects.filter(account=account).order_by("-taken_at")


def tables(snapshot: Snapshot) -> list[SnapshotTable]:
    """Return the tables of a snapshot by name."""
    return list(snapshot.tables.order_by("folded_name"))


def totals(snapshot: Snapshot) -> tuple[int, int]:
    """Return the number and bytes of entities in a snapshot."""
    found = snapshot.tables.aggregate(entities=Sum("entities", default=0), size=Sum("size", default=0))
    return found["entities"], found["size"]


def listed(account: Account) -> list[Snapshot]:
    """Return the snapshots, latest first, with the sums ``table_count``, ``rows`` and ``bytes``."""
    shown = Snapshot.objects.filter(account=account).exclude(reason=SnapshotReason.BRANCH)
    summed = shown.annotate(
        table_count=Count("tables"),
        rows=Sum("tables__entities", default=0),
        bytes=Sum("tables__size", default=0),
        copied=Count("tables", filter=Q(tables__is_copied=True)),
    )
    return list(summed.order_by("-taken_at", "-pk"))


# changing


@transaction.atomic
def rename(snapshot: Snapshot, name: str, *, by: Actor = SERVER) -> Activity | None:
    """Rename a snapshot; raises SnapshotError, SnapshotExists."""
    _check_name(name)
    if name == snapshot.name:
        return None
    before = snapshot.name
    try:
        with transaction.atomic():
            Snapshot.objects.filter(pk=snapshot.pk).update(name=name)
    except IntegrityError:
        raise SnapshotExists(Reason.SNAPSHOT_EXISTS, snapshot=name) from None
    snapshot.name = name
    return _record_change(snapshot, by, {"name": before}, {"name": name})


@transaction.atomic
def keep_until(snapshot: Snapshot, expires_at: datetime | None, *, by: Actor = SERVER) -> Activity | None:
    """Set when a snapshot expires; None for never."""
    before = snapshot.expires_at
    if before == expires_at:
        return None
    snapshot.expires_at = expires_at
    snapshot.save(update_fields=("expires_at",))
    return _record_change(snapshot, by, _expiry(before), _expiry(expires_at))


def _expiry(moment: datetime | None) -> dict[str, str | None]:
    return {"expires_at": None if moment is None else moment.isoformat()}


def _record_change(snapshot: Snapshot, by: Actor, before: object, after: object) -> Activity:
    return activity.record(
        SnapshotVerb.CHANGE,
        by,
        account=snapshot.account,
        detail={"snapshot": snapshot.name},
        before=before,
        after=after,
    )


@transaction.atomic
def delete(snapshot: Snapshot, *, by: Actor = SERVER) -> None:
    """Delete a snapshot with its copied data."""
    snapshot_copies.drop_relations(snapshot)
    if not read_member(SnapshotReason, snapshot.reason).is_automatic:
        activity.record(SnapshotVerb.DELETE, by, account=snapshot.account, detail={"snapshot": snapshot.name})
    snapshot.delete()


# jobs


def schedule(account: Account, new_schedule: Schedule | None, *, by: Actor = SERVER) -> None:
    """Set the snapshot schedule of an account; None to disable it."""
    with transaction.atomic():
        before = scheduled(account)
        if before == new_schedule:
            return
        if new_schedule is None:
            SnapshotSchedule.objects.filter(account=account).delete()
        else:
            fields = {**asdict(new_schedule), "next_at": new_schedule.next_after(timezone.now())}
            SnapshotSchedule.objects.update_or_create(account=account, defaults=fields)
        written = [None if it is None else asdict(it) for it in (before, new_schedule)]
        activity.record(SnapshotVerb.SCHEDULE, by, account=account, before=written[0], after=written[1])


def scheduled(account: Account) -> Schedule | None:
    found = SnapshotSchedule.objects.filter(account=account).first()
    return None if found is None else _schedule(found)


def _schedule(found: SnapshotSchedule) -> Schedule:
    return Schedule(found.hour, found.weekday, found.keep)


def tidy(now: datetime) -> None:
    """Take due snapshots, and delete expired or excess ones."""
    with attempting_each("Not every snapshot could be taken or deleted") as attempt:
        for far in SnapshotSchedule.objects.filter(
            next_at__gt=now + _LONGEST_INTERVAL
        ):  # the clock was set back
            with attempt():
                far.next_at = _schedule(far).next_after(now)
                far.save(update_fields=("next_at",))
        for due in SnapshotSchedule.objects.filter(next_at__lte=now).select_related("account"):
            with attempt():
                _take_scheduled(due, now)
        for snapshot in Snapshot.objects.filter(expires_at__lte=now).select_related("account"):
            with attempt():
                delete(snapshot)


def _take_scheduled(due: SnapshotSchedule, now: datetime) -> None:
    plan, account = _schedule(due), due.account
    name = f"{'daily' if plan.weekday is None else 'weekly'}-{now:%Y-%m-%d}"
    take_automatic(account, name, SnapshotReason.SCHEDULE, lifetime=None)
    due.next_at = plan.next_after(now)
    due.save(update_fields=("next_at",))
    former = Snapshot.objects.filter(account=account, reason=SnapshotReason.SCHEDULE).order_by("-taken_at")
    for snapshot in former[plan.keep :]:
        delete(snapshot)
