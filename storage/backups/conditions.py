"""Conditions of notices about backups and the archive."""

from collections.abc import Iterator

from storage.backups import archive, backups
from storage.core.notices import Found, Look
from storage.health.machine import machine


def find_overdue(look: Look) -> Iterator[Found]:
    state = backups.state(look.now)
    is_old = state.next_at is None and state.last is not None and look.now - state.last.made_at > backups.OLD
    if state.last is not None and (state.is_overdue or is_old):
        yield Found(None, machine(), {"made_at": state.last.made_at.isoformat()})


def find_failed(look: Look) -> Iterator[Found]:
    state = backups.state(look.now)
    if state.is_failing and state.failure is not None:
        at = state.failure.failed_at.isoformat()
        yield Found(None, machine(), {"failed_at": at}, news=at)


def find_failed_drill(look: Look) -> Iterator[Found]:
    state = backups.state(look.now)
    if state.drill is not None and (state.is_drill_failing or state.is_drill_overdue):
        yield Found(None, machine(), news=state.drill.at.isoformat() if state.is_drill_failing else "")


def find_missing(look: Look) -> Iterator[Found]:
    if archive.summary() is None and backups.is_missing(backups.state(look.now)):
        yield Found(None, machine())


def find_failing_archive(look: Look) -> Iterator[Found]:
    summary = archive.summary()
    # without a base backup, and with a gap, the server itself makes one
    passing = {archive.Problem.NO_BASE, archive.Problem.INTERRUPTED}
    if summary is not None and any(it.problem not in passing for it in summary.problems):
        yield Found(None, machine())
