"""Job runner threads of this process; all processes of all servers share the work."""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import BoundedSemaphore, Event, Lock
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.utils.module_loading import import_string

from storage.core import registry
from storage.domain.access.actor import Actor
from storage.domain.access.roles import LEAST_ROLE, Capability
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason
from storage.domain.requests.spans import carried
from storage.health import database_version
from storage.jobs import jobs, running
from storage.jobs.jobs import JobError, Starter
from storage.jobs.kinds import JobKind
from storage.jobs.running import Kinds
from storage.jobs.states import Unit
from storage.models import Job
from storage.runtime.job_news import JobNews
from storage.sql.django import is_unavailable
from storage.transfer import file_work

logger = logging.getLogger(__name__)

KINDS: Final[Mapping[str, JobKind[Any, Any]]] = {
    kind.name: kind for kind in map(import_string, registry.jobs())
}

_INTERVAL: Final = 1.0  # seconds between looks at jobs that cannot be run yet, and after a failure
_SHUTDOWN_TIMEOUT: Final = 5.0  # seconds for the steps that run
_waiting_lane: Final = BoundedSemaphore(1)
_looking: Final = Lock()


async def run(news: JobNews) -> None:
    """Run jobs until cancelled, then wait for the current steps."""
    ends = Event()
    loop = asyncio.get_running_loop()
    lanes = _lanes()
    with_threads = ThreadPoolExecutor(max_workers=len(lanes), thread_name_prefix="job")
    threads = [
        loop.run_in_executor(with_threads, carried(partial(_run, kinds, news, ends))) for kinds in lanes
    ]
    try:
        # a thread cannot be cancelled, only waited for
        await asyncio.shield(asyncio.gather(*threads))
    finally:
        ends.set()
        news.announce()
        with_threads.shutdown(wait=False)
        await asyncio.wait(threads, timeout=_SHUTDOWN_TIMEOUT)


def _lanes() -> list[Kinds]:
    """Return the job kinds of each thread, so that small jobs never wait for file parsing or long steps."""
    lanes: list[Kinds] = []
    for parses_files in (False, True):
        lane = {name: kind for name, kind in KINDS.items() if kind.parses_files is parses_files}
        lanes += [lane, {name: kind for name, kind in lane.items() if kind.is_transactional}]
    return [lane for lane in lanes if lane]


def _run(kinds: Kinds, news: JobNews, ends: Event) -> None:
    while not ends.is_set():
        known = news.number
        pause = _INTERVAL
        try:
            pause = _run_some(kinds, news, ends)
        except StorageError:
            pass  # the database is busy, or a step took too long: it is tried again
        except (OperationalError, InterfaceError) as error:
            logger.warning("The database does not answer: %s", error)
        except Exception as error:
            if not isinstance(error, DatabaseError) or not is_unavailable(error):
                logger.exception("Jobs could not be run")
        finally:
            connection.close()
        if pause and not ends.is_set():
            news.wait_after(known, pause)


def _run_some(kinds: Kinds, news: JobNews, ends: Event) -> float:
    """Run a job if one is available; return the seconds until the next look, unless a job is announced."""
    if not _is_any_pending(kinds):
        return news.longest_wait
    if database_version.is_outdated():
        return _INTERVAL
    # those that others run may be left by them, and those that wait for something may wait no longer
    has_run = running.run_some(kinds, ends.wait, others=lambda: len(running.pending(kinds)) > 1)
    return 0.0 if has_run else _INTERVAL


def _is_any_pending(kinds: Kinds) -> bool:
    """Return whether a job is available; idle threads look one after the other, on the same connection."""
    with _looking:
        try:
            return bool(running.pending(kinds))
        finally:
            connection.close()


def run_all() -> None:
    """Run all runnable jobs in this thread."""
    running.run_all(KINDS)


def finish(job: Job) -> Job:
    """Wait for the end of a job, running it in this thread unless a server does.

    One thread at a time parses users' files, so that the other waiting threads keep their connections.
    """
    return running.finish(job, KINDS, _waiting_lane if KINDS[job.kind].parses_files else None)


def resume(job: Job, *, by: Actor) -> Job:
    """Resume a paused, cancelled or failed job for the user who started it.

    Raises JobError, also if that user has lost access, and TooMuchFileWork.
    """
    kind = KINDS.get(job.kind)
    if kind is not None:
        look, starter = running.look(job, kind), jobs.started_by(job)
        if look is not None and not look.is_allowed:
            raise JobError(Reason.JOB_ACCESS_LOST, user=starter.name)
        if kind.parses_files and job.account is not None and job.ended_at is not None:
            file_work.require_room(job.account, by=starter)
    return jobs.resume(job, by=by)


def capability_to_change(job: Job, user: Starter) -> Capability:
    """Return the capability that a user needs to pause, cancel or resume a job."""
    kind = KINDS.get(job.kind)
    needed = Capability.OWN if kind is None else kind.capability
    if jobs.is_started_by(job, user):
        return needed
    return max(needed, Capability.MANAGE_TABLES, key=lambda capability: LEAST_ROLE[capability])


def unit_of(job: Job) -> Unit:
    """Return the unit of a job's progress."""
    kind = KINDS.get(job.kind)
    return (
        Unit.ENTITIES
        if kind is None or not kind.knows(job)
        else kind.unit(kind.read_arguments(job.arguments))
    )


def capability_to_download(job: Job) -> Capability:
    """Return the capability needed to download a job's result files."""
    kind = KINDS.get(job.kind)
    return Capability.OWN if kind is None else kind.reads_files
