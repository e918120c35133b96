"""Successive changes by one caller to one table within a minute, as one line of the activity log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from storage.domain.access.actor import ActorKind
from storage.models import Activity
from storage.operations.changes.changes import ChangeEntry

FEW: Final = 4  # that are lines of their own
Entry = Activity | ChangeEntry


def runs_of(entries: Sequence[Entry]) -> Iterator[tuple[ChangeEntry | None, Sequence[Entry]]]:
    """Divide the entries of a page into runs, each with what joins it, None for entries that stand alone."""
    for caller, run in groupby(entries, _caller):
        members = list(run)
        changes = [it for it in members if not isinstance(it, Activity)]
        yield (_join(changes) if caller is not None and len(changes) > FEW else None), members


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
