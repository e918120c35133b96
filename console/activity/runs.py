"""Grouping of consecutive log entries by one caller into one line."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

from storage.activity.actors import actor_of
from storage.domain.access.actor import ActorKind
from storage.history.changes import ChangeEntry
from storage.models import Activity

FEW: Final = 4  # that are lines of their own
Entry = Activity | ChangeEntry


class Repeated(NamedTuple):
    """Latest of several consecutive activities that differ only in their targets."""

    done: Activity
    others: int  # the number of further activities
    is_open: bool  # older ones that were not read may belong to it


def repeated(activities: Sequence[Activity], *, has_older: bool) -> list[Repeated]:
    """Group consecutive similar activities of a caller, day and account, newest first."""
    runs = [list(run) for _kind, run in groupby(activities, _kind_of)]
    return [
        Repeated(run[0], len(run) - 1, is_open=has_older and run[-1] is activities[-1] and len(run) > 1)
        for run in runs
    ]


def _kind_of(done: Activity) -> tuple[object, ...]:
    who = replace(actor_of(done), request_id="", address="", agent="")
    return who, done.account_id, done.effective_verb, done.at.date()


def runs_of(entries: Sequence[Entry]) -> Iterator[tuple[ChangeEntry | None, Sequence[str], Sequence[Entry]]]:
    """Divide log entries into runs: consecutive changes to one table within a minute.

    Each run comes with its combined change and its requests; None for a single entry.
    """
    for caller, run in groupby(entries, _caller):
        members = list(run)
        changes = [it for it in members if not isinstance(it, Activity)]
        if caller is not None and len(changes) > FEW:
            requests = [it.request for it in changes]
            yield _join(changes), requests if all(requests) else (), members
        else:
            yield None, (), members


def _caller(entry: Entry) -> tuple[object, ...] | None:
    if isinstance(entry, Activity) or entry.actor.kind in (ActorKind.USER, ActorKind.SERVER):
        return None
    who = replace(entry.actor, request_id="")
    return who, entry.table and entry.table.pk, entry.latest.replace(second=0, microsecond=0)


def _join(members: Sequence[ChangeEntry]) -> ChangeEntry:
    return members[0]._replace(
        request="",
        earliest=min(it.earliest for it in members),
        inserted=sum(it.inserted for it in members),
        changed=sum(it.changed for it in members),
        deleted=sum(it.deleted for it in members),
        is_open=any(it.is_open for it in members),
        requests=sum(it.requests for it in members),
    )
