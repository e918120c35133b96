"""Limits on reading users' files: how many at a time, and how many requests wait."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from time import monotonic
from typing import IO, Any, Final

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet

from storage.accounts import quotas
from storage.core.quotas import ACCOUNT_IMPORTS, IMPORTS
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.errors import ServerBusy
from storage.domain.refusals import Reason, Refused
from storage.jobs import files, process_end
from storage.jobs.states import Wish
from storage.models import Account, Job, JobFile
from storage.sql.django import release_connection

_PLACES: Final = 2  # users whose files a process reads at a time
_MOST_WAITING: Final = 4  # requests of a user, with the one that reads
_PATIENCE: Final = 15.0  # seconds
_LOOK: Final = 0.5
_OF_ROWS: Final = ("entity.import", "entity.import-check")
_OF_FILES_OR_SERVICES: Final = "account.copy-in"
_LIMITED: Final = (ActorKind.USER, ActorKind.TOKEN)


class TooMuchFileWork(Refused):
    """A user or account has too many files in progress."""


# reading while a request waits

_free: Final = Condition()
_reading: Final = set[str]()  # users
_waiting: Final = Counter[str]()  # requests of users, both waiting and reading


@contextmanager
def reading(user: str) -> Iterator[None]:
    """Wait for a slot to read a user's file, and hold it during the block.

    Raises TooMuchFileWork if too many requests of the user are waiting, and ServerBusy on timeout.
    """
    release_connection()
    with _free:
        if _waiting[user] >= _MOST_WAITING:
            raise TooMuchFileWork(Reason.FILES_BEING_READ)
        _waiting[user] += 1
        try:
            _wait_for_place(user)
            _reading.add(user)
        except BaseException:
            _leave(user)
            raise
    try:
        yield
    finally:
        with _free:
            _reading.discard(user)
            _leave(user)
            _free.notify_all()


def _wait_for_place(user: str) -> None:
    ends = monotonic() + _PATIENCE
    while not _free.wait_for(lambda: len(_reading) < _PLACES and user not in _reading, _LOOK):
        if monotonic() > ends or process_end.wait(0):
            raise ServerBusy(Reason.FILES_BUSY.of())


def _leave(user: str) -> None:
    _waiting[user] -= 1
    if not _waiting[user]:
        del _waiting[user]


def check_process() -> None:
    """Raise ServerBusy if the process is ending while a file is read."""
    if process_end.wait(0):
        raise ServerBusy(Reason.FILES_BUSY.of())


def opening(file: JobFile) -> Callable[[], IO[bytes]]:
    """Return a function that opens a file with a reader that holds a connection only while reading a piece."""
    return lambda: files.open_file(file, _UnconnectedReader)


class _UnconnectedReader(files.FileReader):
    def readinto(self, buffer: Any, /) -> int:
        try:
            return super().readinto(buffer)
        finally:
            release_connection()


# jobs


def require_room(account: Account, *, by: Actor) -> None:
    """Raise TooMuchFileWork if a user or account has too many file jobs."""
    if by.kind not in _LIMITED:
        return
    if connection.in_atomic_block:
        users = apps.get_model(settings.AUTH_USER_MODEL)._default_manager
        users.select_for_update(no_key=True).filter(username=by.name).first()
    kinds = [kind.value for kind in _LIMITED]
    most = quotas.limit(IMPORTS)
    if _unfinished().filter(actor__name=by.name, actor__kind__in=kinds).count() >= most:
        raise TooMuchFileWork(Reason.TOO_MANY_IMPORTS, most=most)
    most = quotas.limit(ACCOUNT_IMPORTS)
    if _unfinished().filter(account=account).count() >= most:
        raise TooMuchFileWork(Reason.TOO_MANY_ACCOUNT_IMPORTS, account=account.name, most=most)


def _unfinished() -> QuerySet[Job]:
    """Select unfinished file jobs, except those being cancelled."""
    of_files = Q(kind=_OF_FILES_OR_SERVICES) & ~Q(arguments__file=0)
    return Job.objects.filter(Q(kind__in=_OF_ROWS) | of_files, ended_at=None).exclude(wish=Wish.CANCEL)
