"""Failures of periodic work, each logged once, counted, and shown by the doctor until it succeeds."""

import logging
from contextlib import suppress
from datetime import datetime
from threading import Lock
from typing import Final, NamedTuple

from django.db import DatabaseError, OperationalError
from django.db.models.functions import Now

from storage.domain.errors import StorageError
from storage.models import PeriodicRun
from storage.runtime import prometheus

logger = logging.getLogger(__name__)

# begins names of failing work, beside the names of work that was done; older servers know none of them
_PREFIX: Final = "failing:"
_WORKS: Final = ""


class FailingPart(NamedTuple):
    name: str
    since: datetime


class WorkFailures:
    """Results of periodic work in this process, by part."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}  # by part, how it failed the last time; empty: it works
        self._lock = Lock()

    def note(self, part: str, error: Exception, text: str = "") -> None:
        """Count a failure, and log it unless the part failed in the same way before."""
        prometheus.count_work_failure(part)
        kind = _kind_of(error)
        with self._lock:
            is_news = self._known.get(part) != kind
            self._known[part] = kind
        if is_news:
            logger.error(
                "%s (%s): %s. It is tried again; the same failure is not logged again until this works.",
                text or "A part of the periodic work failed",
                part,
                _describe(error),
                exc_info=error if _is_unexpected(error) else None,
            )
        with suppress(DatabaseError):  # it has been logged
            PeriodicRun.objects.get_or_create(name=_PREFIX + part, defaults={"done_at": Now()})

    def note_success(self, part: str) -> None:
        """Forget the failures of a part; on its first run in this process, also those of a former process."""
        with self._lock:
            before = self._known.get(part)
            self._known[part] = _WORKS
        if before == _WORKS:
            return
        if before is not None:
            logger.warning("The part %s of the periodic work succeeds again.", part)
        PeriodicRun.objects.filter(name=_PREFIX + part).delete()


work_failures: Final = WorkFailures()


def failing() -> list[FailingPart]:
    """Return the parts whose last run failed on any server."""
    found = PeriodicRun.objects.filter(name__startswith=_PREFIX).order_by("name")
    return [FailingPart(it.name.removeprefix(_PREFIX), it.done_at) for it in found]


def _describe(error: BaseException) -> str:
    """Return the first line of an error without its period, and of a group its message with each reason."""
    if isinstance(error, BaseExceptionGroup):
        reasons = dict.fromkeys(map(_describe, error.exceptions))
        return f"{error.message}: {'; '.join(reasons)}"
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def _is_unexpected(error: BaseException) -> bool:
    """Return whether an error may be a bug, unlike a full disk or lost database."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_unexpected, error.exceptions))
    return not isinstance(error, StorageError | OperationalError)


def _kind_of(error: BaseException) -> str:
    """Return the kind of a failure, without details that vary, such as relation names."""
    if isinstance(error, BaseExceptionGroup):
        return "+".join(sorted({_kind_of(it) for it in error.exceptions}))
    state = getattr(error.__cause__, "sqlstate", None)
    return f"{type(error).__name__} {state or ''}"
