"""Recording of entity changes with their actors in the account's history."""

import uuid
from collections import OrderedDict
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import BigIntegerField, Func, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest, Least

from storage.domain.access.actor import Actor
from storage.domain.errors import ServerBusy
from storage.models import Account, HistorySegment
from storage.sql import django as sql
from storage.sql import history as statements
from storage.sql.history import Recorder, writers_name
from storage.sql.lanes import Lanes
from storage.sql.moments import present_time

_ATTEMPTS: Final = 10
_PATIENCE: Final = "1s"  # for writers
# a subquery, so that PostgreSQL reads its file once and not for every segment
_THIS_CLUSTER: Final = Func(
    template="(SELECT system_identifier FROM pg_control_system())", output_field=BigIntegerField()
)
_INSTANT: Final = timedelta(microseconds=1)
_KNOWN_LIMIT: Final = 10_000


def is_available() -> bool:
    """Return whether the database can record changes, which takes PostgreSQL 18 or later."""
    return sql.server_version() >= statements.OLDEST_POSTGRESQL


def start(account: Account, *, is_new: bool = False) -> None:
    """Start recording an account's changes, in the caller's transaction."""
    if not is_available():
        return
    older = HistorySegment.objects.filter(account=account)
    older.filter(ended_at=None).update(ended_at=present_time())
    last = older.order_by("-number").values_list("number", flat=True).first() or 0
    since = (
        Least(Value(account.created_at), present_time())
        if is_new
        else Greatest(Value(account.created_at + _INSTANT), present_time())
    )
    _make(account.pk, last + 1, since)
    _make(account.pk, last + 2, present_time())
    sql.execute(statements.write_to(account.pk, last + 1))


def _make(account_id: int, number: int, started_at: Combinable) -> None:
    HistorySegment.objects.create(
        account_id=account_id, number=number, started_at=started_at, cluster=_THIS_CLUSTER
    )
    sql.execute(statements.create(account_id, number))


def go_on(account_id: int) -> None:
    """Switch an account's writers to the next segment, in the caller's transaction."""
    present, following = HistorySegment.objects.filter(account_id=account_id, ended_at=None).order_by(
        "number"
    )
    sql.execute(statements.write_to(account_id, following.number))
    [(xid,)] = sql.fetch("SELECT pg_current_xact_id()::text::bigint")
    present.ended_at, present.last_xid = present_time(), xid
    present.save(update_fields=("ended_at", "last_xid"))
    following.started_at = present_time()
    following.save(update_fields=("started_at",))


def prepare_next(account_id: int) -> None:
    """Create the next history segment of an account, if there is none.

    It is created long before it is written to, so that a reader who has just listed the segments knows the
    one that is written to next.
    """
    last, *others = HistorySegment.objects.filter(account_id=account_id, ended_at=None).order_by("-number")
    if not others:
        _make(account_id, last.number + 1, present_time())


def begin_in_this_cluster() -> None:
    """Start new segments for all accounts after a restore from a dump."""
    opened = HistorySegment.objects.filter(ended_at=None)
    for account_id in set(opened.exclude(cluster=_THIS_CLUSTER).values_list("account_id", flat=True)):
        with transaction.atomic():
            sql.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
            own = opened.filter(account_id=account_id).select_for_update().order_by("number")
            if not own.exclude(cluster=_THIS_CLUSTER)[:1]:
                continue  # another process was first
            prepare_next(account_id)
            own.filter(number=own[1].number).update(cluster=_THIS_CLUSTER)
            go_on(account_id)


def end(account: Account) -> None:
    """Stop recording; existing segments are dropped soon."""
    HistorySegment.objects.filter(account=account, ended_at=None).update(ended_at=present_time())


def end_unless_available() -> None:
    """End all histories if the database cannot record changes, so that later ones have no gap."""
    if not is_available():
        HistorySegment.objects.filter(ended_at=None).update(ended_at=present_time())


def remove(account: Account) -> None:
    """Drop the history of an account that is being deleted."""
    sql.execute(statements.drop_view(account.pk))
    kept = HistorySegment.objects.filter(account=account, dropped_at=None)
    for number, packed in kept.values_list("number", "packed"):
        sql.execute(statements.drop(account.pk, number, packed=packed))


def is_recorded(account: Account) -> bool:
    """Return whether changes are recorded; accounts created by a server before 1.0 lack a segment at first."""
    return account.history_days > 0 and HistorySegment.objects.filter(account=account, ended_at=None).exists()


def recorded_of(account_ids: Collection[int]) -> set[int]:
    """Return the ids of the accounts whose changes are recorded."""
    opened = HistorySegment.objects.filter(
        account__in=account_ids, account__history_days__gt=0, ended_at=None
    )
    return set(opened.values_list("account", flat=True))


def recorder(account: Account, by: Actor) -> Recorder | None:
    """Return the recorder for an actor in an account; None without a history."""
    if not is_recorded(account):
        return None
    for _ in range(_ATTEMPTS):
        number = sql.run(statements.intern(by))
        if number is not None:
            return Recorder(writers_name(account.pk), number, _request(by))
    raise ServerBusy


def _request(by: Actor) -> str:
    """Return the GUID of a request; commands and the server's jobs get a new one per call."""
    try:
        return str(uuid.UUID(by.request_id))
    except ValueError:
        return str(uuid.uuid4())


class Actors:
    """Cache of the numbers of actors, for the history's recorder."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._known: OrderedDict[tuple[str, ...], int] = OrderedDict()

    async def recorder(self, account_id: int, by: Actor) -> Recorder:
        who = (by.kind, by.name, by.address, by.agent, by.token)
        number = self._known.get(who)
        if number is None:
            number = await self._number(by)
            self._known[who] = number
            if len(self._known) > _KNOWN_LIMIT:
                self._known.popitem(last=False)
        request = by.request_id or str(uuid.uuid4())
        return Recorder(writers_name(account_id), number, request)

    async def _number(self, by: Actor) -> int:
        for _ in range(_ATTEMPTS):
            number = await self._lanes.run(statements.intern(by))
            if number is not None:
                return number
        raise ServerBusy
