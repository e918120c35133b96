"""Retention of account histories by time and size: segments end and are dropped."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Count
from django.db.models.functions import Now

from storage.core.account_settings import LEAST_HISTORY
from storage.health import disk
from storage.models import Account, HistorySegment
from storage.relations import history, snapshot_copies
from storage.sql import django as sql
from storage.sql import history as statements
from storage.sql.attempts import attempting_each
from storage.sql.record import Record

SEGMENTS: Final = 8  # that hold what an account may keep
_OPEN: Final = 2  # the segment that is written to, and the next one
_SHARE: Final = 0.2  # share of the disk, for all accounts together
_REMOTE: Final = 10 << 30  # bytes for all accounts, where the disk is not ours to ask
_WORTH_PACKING: Final = 1 << 20  # bytes
_LOCK_NOT_AVAILABLE: Final = "55P03"
_PATIENCE: Final = "40ms"  # for locks that writers wait behind


class Kept(NamedTuple):
    """The time since which changes of an account are kept, and their size in bytes on disk."""

    since: datetime | None
    size: int


def kept(account: Account) -> Kept:
    """Return the time and size that an account's history covers; ``since`` is None without one."""
    segments = HistorySegment.objects.filter(account=account, dropped_at=None).order_by("number")
    if not segments or not history.is_recorded(account):
        return Kept(None, 0)
    record = Record.of(account.pk, (it.number for it in segments))
    return Kept(segments[0].started_at, sum(statements.sizes(record.segments).values()))


def limit(account: Account) -> int:
    """Return the size limit in bytes of an account's history: its own, or its part of a share of the disk."""
    return account.history_bytes or _part(Account.objects.count())


def _part(accounts: int) -> int:
    return max(LEAST_HISTORY, share_of_disk() // max(1, accounts))


def share_of_disk() -> int:
    """Return the bytes available to all histories together."""
    if settings.OPTIONS.database_url:
        return _REMOTE
    return int(disk.space_of(settings.OPTIONS.data).total * _SHARE)


def tidy(now: datetime) -> None:
    """End old or large segments, and drop expired ones."""
    sizes = statements.sizes_of_used()
    share = _part(Account.objects.count())
    with attempting_each("Not every history could be tidied") as attempt:
        for account in _to_look_at(sizes):
            own = list(HistorySegment.objects.filter(account=account, dropped_at=None).order_by("number"))
            of_own = [sizes.get((account.pk, it.number), 0) for it in own]
            with attempt():
                _tidy(account, own, of_own, account.history_bytes or share, now)


def _to_look_at(sizes: Mapping[tuple[int, int], int]) -> list[Account]:
    """Return the accounts with segments to prune: those with more than an empty open one and the next."""
    kept = HistorySegment.objects.filter(dropped_at=None)
    account_ids = {account_id for (account_id, _), size in sizes.items() if size}
    account_ids |= set(kept.exclude(ended_at=None).values_list("account", flat=True))
    opened = kept.filter(ended_at=None).values("account").annotate(number=Count("pk"))
    numbers = dict(opened.values_list("account", "number"))
    recorded = Account.objects.filter(history_days__gt=0).values_list("pk", flat=True)
    account_ids |= {pk for pk in recorded if numbers.get(pk) != _OPEN}
    return list(Account.objects.filter(pk__in=account_ids).order_by("pk"))


def _tidy(
    account: Account, segments: list[HistorySegment], sizes: list[int], most: int, now: datetime
) -> None:
    is_recorded = account.history_days > 0 and history.is_available()
    open_ones = [it for it in segments if it.ended_at is None]
    if is_recorded and not open_ones:
        _try(partial(history.start, account))  # a server before 1.0 has added the account
        return
    longest = timedelta(days=account.history_days)
    present = len(segments) - len(open_ones)
    if is_recorded and sizes[present] and len(open_ones) > 1:
        age = now - segments[present].started_at
        if age > longest / SEGMENTS or sizes[present] > most / SEGMENTS:
            _try(partial(history.go_on, account.pk))
            open_ones.pop()
    if is_recorded and len(open_ones) == 1:
        # in a transaction of its own: the files of a new relation are written to disk before it ends
        _try(partial(history.prepare_next, account.pk))
    total = sum(sizes)
    for segment, size in zip(segments[:present], sizes, strict=False):
        assert segment.ended_at is not None
        is_kept = is_recorded and total <= most and segment.ended_at > now - longest
        if not is_kept:
            snapshot_copies.copy_those_before(account, segment.ended_at)
            _try(partial(_drop, segment))
            total -= size
        elif not segment.packed and size > _WORTH_PACKING:
            _try(partial(_pack, segment))


def _drop(segment: HistorySegment) -> None:
    sql.execute(statements.drop(segment.account_id, segment.number, packed=segment.packed))
    HistorySegment.objects.filter(pk=segment.pk).update(dropped_at=Now())


def _pack(segment: HistorySegment) -> None:
    sql.execute(statements.pack(segment.account_id, segment.number))
    HistorySegment.objects.filter(pk=segment.pk, dropped_at=None).update(packed=True)


def _try(do: Callable[[], None]) -> None:
    """Run a function in a transaction that times out instead of blocking others."""
    try:
        with transaction.atomic():
            sql.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
            do()
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != _LOCK_NOT_AVAILABLE:
            raise
        # readers or writers hold a lock; the next run tries again
