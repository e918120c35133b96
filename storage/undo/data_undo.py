"""Undo of recorded changes by any actor: all of a caller, a request or a period, or single ones.

An undo writes the former states of the entities as a recorded write with its own request id, so it appears in
the history and can be undone. An entity that was changed again keeps its newer state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from storage.accounts import accounts
from storage.activity.undoing import check_first, find_account
from storage.domain.access.actor import ActorKind
from storage.domain.access.roles import Capability
from storage.domain.values.ticks import to_datetime
from storage.history import changes, key_changes, past
from storage.history.changes import ChangeFilter
from storage.history.subject import HistoryVerb
from storage.jobs import jobs
from storage.jobs.kinds import JobRequest, Run, Step
from storage.jobs.starters import NeededAccess
from storage.models import Account, Activity, Job, Table
from storage.relations.record import recorded_changes
from storage.sql import changes as statements
from storage.sql import restoring
from storage.sql.forms import history_of
from storage.sql.relations import relation_name, relation_of
from storage.sql.restoring import Images
from storage.undo import reverting
from storage.undo.outcome_jobs import (
    OutcomeJob,
    OutcomeState,
    Progress,
    began,
)
from storage.undo.outcomes import Outcome, TableOutcome

PREVIEW_LIMIT: Final = timedelta(seconds=20)


@dataclass(slots=True)
class UndoPreview(Outcome):
    """A preview of an undo."""

    changes: int = 0
    dropped: int = 0  # changes in tables that no longer exist


def preview(account: Account, criteria: ChangeFilter, *, sample: int = 5) -> UndoPreview:
    """Preview the undo of matching changes; raises OperationTimedOut."""
    counts = changes.count_by_table(account, criteria)
    existing = _existing(account, counts)
    total = sum(counts.values())
    return UndoPreview(
        [_preview_table(account, table, criteria, sample) for table in existing],
        is_preview=True,
        changes=total,
        dropped=total - sum(counts[table.pk] for table in existing),
    )


def _preview_table(account: Account, table: Table, criteria: ChangeFilter, sample: int) -> TableOutcome:
    images = _images(account, table, criteria)
    if images is None:
        return TableOutcome(table.name, table)
    if not table.form.capabilities.joins_partitions:
        return reverting.preview_apart(table, images, sample, PREVIEW_LIMIT)
    counted, samples = changes.run_limited(
        restoring.preview(relation_name(table.pk), images, sample),
        PREVIEW_LIMIT,
        settings=restoring.settings_of(images),
    )
    outcome = TableOutcome(table.name, table, samples=samples)
    outcome.add(counted)
    return outcome


@dataclass(frozen=True, slots=True)
class Arguments:
    """The changes to undo."""

    wanted: str  # a ChangeFilter as it is dumped
    # the time of the request; later changes are newer work, also if the job begins late or is taken over
    until: str
    undoes: int | None = None  # the activity whose changes they are

    def read_filter(self) -> ChangeFilter:
        return ChangeFilter.load(self.wanted)

    def read_closed_filter(self) -> ChangeFilter:
        """Return the filter, limited to changes before the request."""
        wanted, until = self.read_filter(), datetime.fromisoformat(self.until)
        return replace(wanted, until=min(wanted.until or until, until))


class _UndoJob(OutcomeJob[Arguments]):
    name, arguments, capability = "entity.revert", Arguments, Capability.MANAGE_TABLES
    verb = HistoryVerb.REVERT

    def needed_access(self, job: Job, arguments: Arguments) -> Sequence[NeededAccess]:
        """Require only write access from users who undo their own changes."""
        by, capability = jobs.started_by(job), self.capability
        done = Activity.objects.filter(pk=arguments.undoes or 0).first()
        if done is not None and (done.actor_kind, done.actor) == (ActorKind.USER, by.name):
            capability = Capability.WRITE
        return [] if job.account_id is None else [NeededAccess(job.account_id, capability)]

    def begin(self, run: Run[Arguments]) -> Step[OutcomeState]:
        """Start with the number of changes as the total, until the number of entities is known."""
        counts = changes.count_by_table(run.account, run.arguments.read_closed_filter())
        return Step(OutcomeState(), total=sum(counts.values()))

    def apply(self, progress: Progress[Arguments]) -> None:
        run = progress.run
        account, criteria = accounts.writable(run.account), run.arguments.read_closed_filter()
        existing = _existing(account, changes.count_by_table(account, criteria))
        for table in existing:
            images = None if table.name in progress.done else _images(account, table, criteria)
            if images is not None:
                outcome = progress.outcome.table(table.name)
                outcome.table = table
                progress.apply_images(table, outcome, images, is_last=table is existing[-1])
                progress.done.append(table.name)

    def describe(self, run: Run[Arguments], outcome: Outcome) -> dict[str, object]:
        """Return the details for the activity log; empty if no entity was written."""
        if not outcome.written:
            return {}
        criteria = run.arguments.read_filter()
        return {**outcome.detail(), "began": began(run), "selection": _describe(criteria)}

    def undoes(self, run: Run[Arguments]) -> int | None:
        return run.arguments.undoes


UNDO_JOB: Final = _UndoJob()


def request(
    account: Account, criteria: ChangeFilter, *, undoes: Activity | None = None
) -> JobRequest[Arguments, OutcomeState]:
    """Return a job that undoes the matching changes in all tables, except for entities changed since."""
    accounts.check_writable(account)
    until = to_datetime(past.closed_present().ticks) + timedelta(microseconds=1)  # exclusive
    undone = None if undoes is None else undoes.pk
    return JobRequest(UNDO_JOB, Arguments(criteria.dump(), until.isoformat(), undone), account)


def _existing(account: Account, counts: dict[int, int]) -> list[Table]:
    tables = Table.objects.filter(pk__in=counts, account=account, deleted_at=None).select_related("account")
    return list(tables.order_by("pk"))


def _images(account: Account, table: Table, criteria: ChangeFilter) -> Images | None:
    selection = changes.select(account, replace(criteria, table="", table_id=table.pk))
    record = recorded_changes(account.pk, criteria.since)
    if selection is None:
        return None
    if not table.form.capabilities.records_in_account:
        own = statements.beside(table.pk, history_of(relation_of(table)))
        images = statements.undoing_apart(table.pk, record, own, selection)
    elif record:
        images = statements.undoing(table.pk, record, selection)
    else:
        return None
    return key_changes.linked(table, images)


def _describe(criteria: ChangeFilter) -> dict[str, object]:
    """Return the selection of changes in the form of the activity log."""
    described: dict[str, object] = {
        "from": criteria.since and criteria.since.isoformat(),
        "to": criteria.until and criteria.until.isoformat(),
        "who": criteria.actor or criteria.caller or ", ".join(name for _, name in criteria.actors),
        "request": ", ".join(criteria.requests[:10]),
        "key": criteria.key or " ".join(criteria.entity or ()),
    }
    return {name: value for name, value in described.items() if value}


def request_revert(done: Activity) -> JobRequest[Any, Any]:
    check_first(done)
    return request(find_account(done), changes.selection_of(done), undoes=done)
