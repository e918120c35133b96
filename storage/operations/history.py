"""Record changes of entities in the history of their account, as whose they are."""

import uuid
from collections import OrderedDict
from typing import Final

from django.utils import timezone

from storage.domain.access.actor import Actor
from storage.domain.errors import ServerBusy
from storage.models import Account, HistorySegment
from storage.sql import django as sql
from storage.sql import history as statements
from storage.sql.history import Recorder, writers_name
from storage.sql.lanes import Lanes

_ATTEMPTS: Final = 10
_KNOWN_LIMIT: Final = 10_000


def start(account: Account) -> None:
    """Start a new segment of the history of an account, in the caller's transaction."""
    last = HistorySegment.objects.filter(account=account).order_by("-number").first()
    number = 1 if last is None else last.number + 1
    now = timezone.now()
    HistorySegment.objects.filter(account=account, ended_at=None).update(ended_at=now)
    HistorySegment.objects.create(account=account, number=number, started_at=now)
    sql.execute(statements.start(account.pk, number))


def remove(account: Account) -> None:
    """Remove the history of an account that is being deleted."""
    sql.execute(statements.drop_all(account.pk))
    for number in HistorySegment.objects.filter(account=account, dropped_at=None).values_list(
        "number", flat=True
    ):
        sql.execute(statements.drop(account.pk, number))


def is_recorded(account: Account) -> bool:
    """Return whether changes are recorded; an account that a server before 0.5 has added has no segment at first."""
    return account.history_days > 0 and HistorySegment.objects.filter(account=account, ended_at=None).exists()


def recorder(account: Account, by: Actor) -> Recorder | None:
    """Return the recorder of what somebody changes in an account; None if it keeps no history."""
    if not is_recorded(account):
        return None
    for _ in range(_ATTEMPTS):
        number = sql.run(statements.intern(by))
        if number is not None:
            return Recorder(writers_name(account.pk), number, by.request_id or str(uuid.uuid4()))
    raise ServerBusy


class Actors:
    """The numbers of those who send requests, as far as this process knows them."""

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
        return Recorder(writers_name(account_id), number, request, self._lanes.returns_old)

    async def _number(self, by: Actor) -> int:
        for _ in range(_ATTEMPTS):
            number = await self._lanes.run(statements.intern(by))
            if number is not None:
                return number
        raise ServerBusy
