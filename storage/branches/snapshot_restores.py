"""Restore tables, entities, policies and service properties from a snapshot, and reset branches.

The snapshot is compared with the present, and what differs is written as ordinary recorded changes that never overwrite
what is newer than the comparison.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, Self

from django.db import transaction
from django.utils import timezone

from storage.accounts import accounts
from storage.compare import comparing, sides
from storage.compare.applying import Application, Selection, Target
from storage.domain.access.actor import SERVER, Actor
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.entities.restoring import TableAction
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.jobs import running
from storage.jobs.kinds import JobRequest, Run
from storage.jobs.states import JobStatus
from storage.models import Account, Activity, Branch, Snapshot, SnapshotTable, Table
from storage.relations import table_relations
from storage.snapshots import snapshots
from storage.snapshots.schedule import SnapshotReason
from storage.snapshots.snapshots import SnapshotError, SnapshotNotFound
from storage.snapshots.subject import SnapshotVerb
from storage.tables import tables
from storage.undo.outcome_jobs import (
    OutcomeJob,
    OutcomeState,
    Progress,
    outcome_of,
)
from storage.undo.outcomes import Outcome, TableOutcome
from storage.undo.reverting import COLLECTION_LIMIT

_EXAMPLES: Final = 20  # skipped entities that the activity log names


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """A request to restore a snapshot, or parts of it."""

    tables: Sequence[str] | None = None  # by name; None: all
    keys: Sequence[EntityKey] | None = None  # entities of the only table; None: all
    with_policies: bool = False
    with_settings: bool = False
    # whether to delete tables that are newer than the snapshot; only if it has all tables, and all are restored
    deletes_new: bool = False
    deletes: Sequence[str] = ()  # names of tables to delete in any case, if they are newer

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> Self:
        keys = found["keys"]
        return cls(**{**found, "keys": None if keys is None else [EntityKey(*key) for key in keys]})


def _everything(snapshot: Snapshot) -> RestoreRequest:
    return RestoreRequest(with_policies=True, with_settings=True, deletes_new=snapshot.is_whole)


def preview(
    snapshot: Snapshot, restore_request: RestoreRequest, *, limit: timedelta = COLLECTION_LIMIT
) -> Outcome:
    """Return what a restore would change now; raises SnapshotError for tables that are missing from the snapshot.

    Raises OperationTimedOut if a table takes longer than ``limit``.
    """
    restoration = _Restoration(snapshot, restore_request, SERVER, Outcome(is_preview=True))
    for source, deleted in restoration.missing():
        if deleted is not None:
            table_relations.refuse_without_images(deleted)
            restoration.outcome.tables.append(TableOutcome(source.name, deleted, TableAction.RESTORE))
    return restoration.apply(limit=limit)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a restore."""

    snapshot: int
    name: str  # the name of the snapshot
    wanted: Mapping[str, Any]  # a RestoreRequest as JSON
    takes_snapshot: bool
    undoes: int | None
    branch: int | None  # the id of the branch that is reset


class _RestoreJob(OutcomeJob[Arguments]):
    name, arguments, capability = "snapshot.restore", Arguments, Capability.MANAGE_TABLES
    verb = SnapshotVerb.RESTORE

    def apply(self, progress: Progress[Arguments]) -> None:
        run, outcome = progress.run, progress.outcome
        restoration = _load(run, outcome)
        accounts.writable(run.account)

        def save_snapshot(before: Snapshot) -> None:
            outcome.before = before
            progress.save()

        if run.arguments.takes_snapshot and outcome.before is None:
            name = f"before-restore-{run.arguments.name}"
            snapshots.take_automatic(run.account, name, SnapshotReason.RESTORE, by=run.by, save=save_snapshot)
        for missing in restoration.missing() if progress.read_at is None else ():
            with transaction.atomic():
                restoration.make(*missing)
                progress.save()
        restoration.apply(progress)
        assert run.job.started_at is not None
        outcome.seconds = round((timezone.now() - run.job.started_at).total_seconds(), 3)

    def describe(self, run: Run[Arguments], outcome: Outcome) -> dict[str, object]:
        restore_request = RestoreRequest.load(run.arguments.wanted)
        kept = [it for it in outcome.tables if not it.is_deleted]
        created = (TableAction.CREATE, TableAction.RESTORE)
        return {
            "snapshot": run.arguments.name,
            "before": outcome.before.name if outcome.before is not None else "",
            "tables": {it.name: [it.inserted, it.changed, it.deleted, it.skipped] for it in kept},
            "created": [it.name for it in kept if it.action in created],
            "deleted": [it.name for it in outcome.tables if it.is_deleted],
            "skipped": [[it.name, *one.key] for it in kept for one in it.examples[:_EXAMPLES] if one.key],
            "policies": restore_request.with_policies,
            "settings": restore_request.with_settings,
        }

    def undoes(self, run: Run[Arguments]) -> int | None:
        return run.arguments.undoes

    def end(self, run: Run[Arguments], state: OutcomeState | None, status: JobStatus) -> Activity | None:
        branch = Branch.objects.filter(pk=run.arguments.branch or 0).first()
        if branch is not None and status is JobStatus.DONE:
            outcome = Outcome.load(run.job.result, run.account)
            branch.reset_at, branch.reset_entities = timezone.now(), outcome.written
            branch.reset_seconds = outcome.seconds or 0
            branch.save(update_fields=("reset_at", "reset_entities", "reset_seconds"))
        return super().end(run, state, status)


RESTORE_JOB: Final = _RestoreJob()


def _load(run: Run[Arguments], outcome: Outcome) -> "_Restoration":
    """Load the state of a restore; raises SnapshotError if the snapshot was deleted meanwhile."""
    snapshot = Snapshot.objects.filter(pk=run.arguments.snapshot).select_related("account").first()
    if snapshot is None:
        raise SnapshotNotFound(Reason.NO_SNAPSHOT, account=run.account.name, snapshot=run.arguments.name)
    return _Restoration(snapshot, RestoreRequest.load(run.arguments.wanted), run.by, outcome)


def request(
    snapshot: Snapshot,
    restore_request: RestoreRequest,
    *,
    takes_snapshot: bool = True,
    undoes: Activity | None = None,
    branch: Branch | None = None,
) -> JobRequest[Arguments, OutcomeState]:
    """Return a job that restores a snapshot, after taking a snapshot of the present state."""
    accounts.check_writable(snapshot.account)
    _Restoration(snapshot, restore_request, SERVER, Outcome())
    arguments = Arguments(
        snapshot.pk,
        snapshot.name,
        asdict(restore_request),
        takes_snapshot,
        None if undoes is None else undoes.pk,
        None if branch is None else branch.pk,
    )
    return JobRequest(RESTORE_JOB, arguments, snapshot.account)


def restore(snapshot: Snapshot, wanted: RestoreRequest, *, by: Actor = SERVER) -> Outcome:
    """Restore a snapshot, or parts of it, and wait for the result: see ``request``."""
    return outcome_of(running.complete(request(snapshot, wanted), by=by))


def request_reset(branch: Branch) -> JobRequest[Arguments, OutcomeState]:
    """Return a job that resets a branch to its state at creation: tables, policies and service properties."""
    if branch.origin is None:
        raise SnapshotError(Reason.NO_ORIGIN, account=branch.account.name)
    return request(branch.origin, _everything(branch.origin), takes_snapshot=False, branch=branch)


def reset(branch: Branch, *, by: Actor = SERVER) -> Outcome:
    done = outcome_of(running.complete(request_reset(branch), by=by))
    branch.refresh_from_db(fields=("reset_at", "reset_entities", "reset_seconds"))
    return done


def request_reset_to(snapshot: Snapshot) -> JobRequest[Arguments, OutcomeState]:
    """Return a job that restores an account to a snapshot, after taking a snapshot of its present state."""
    return request(snapshot, _everything(snapshot))


def request_undo(account: Account, done: Activity) -> JobRequest[Arguments, OutcomeState]:
    """Return a job that undoes a restore from the snapshot taken before it; raises SnapshotNotFound if it is gone."""
    before = snapshots.get(account, str(done.detail["before"]))
    restore_request = RestoreRequest(
        with_policies=bool(done.detail["policies"]),
        with_settings=bool(done.detail["settings"]),
        deletes=done.detail["created"],
    )
    return request(before, restore_request, undoes=done)


class _Restoration:
    """A restore of a snapshot by an actor, with its outcome.

    Raises SnapshotError if the request makes no sense for the snapshot.
    """

    def __init__(
        self, snapshot: Snapshot, restore_request: RestoreRequest, by: Actor, outcome: Outcome
    ) -> None:
        self.outcome = outcome
        self._snapshot, self._account = snapshot, snapshot.account
        self._wanted, self._by = restore_request, by
        self._fold = partial(fold_table_name, kind=AccountKind(self._account.kind))
        self._tables = self._find_tables()

    def _find_tables(self) -> list[SnapshotTable]:
        snapshot, restore_request = self._snapshot, self._wanted
        if restore_request.deletes_new and not snapshot.is_whole:
            raise SnapshotError(Reason.SNAPSHOT_OF_SOME_TABLES, snapshot=snapshot.name)
        if restore_request.deletes_new and restore_request.tables is not None:
            raise SnapshotError(Reason.ONLY_SOME_RESTORED)
        snapshot_tables = snapshots.tables(snapshot)
        if restore_request.tables is not None:
            names = set(map(self._fold, restore_request.tables))
            missing = names - {it.folded_name for it in snapshot_tables}
            if missing:
                raise SnapshotError(Reason.NO_TABLE_IN_SNAPSHOT, snapshot=snapshot.name, table=min(missing))
            snapshot_tables = [it for it in snapshot_tables if it.folded_name in names]
        if restore_request.keys is not None and len(snapshot_tables) != 1:
            raise SnapshotError(Reason.ONE_TABLE)
        return snapshot_tables

    def missing(self) -> list[tuple[SnapshotTable, Table | None]]:
        """Return the tables to recreate, each with the soft-deleted table to restore, or None if it was dropped."""
        own = Table.objects.existing().filter(account=self._account)
        present = set(own.values_list("folded_name", flat=True))
        missing = [it for it in self._tables if it.folded_name not in present]
        deleted: dict[int, Table | None] = dict.fromkeys(it.table_id for it in missing)
        kept = Table.objects.exclude(deleted_at=None).filter(pk__in=deleted)
        deleted |= {it.pk: it for it in kept.select_related("account")}
        return [(it, deleted[it.table_id]) for it in missing]

    def make(self, source: SnapshotTable, deleted: Table | None) -> None:
        """Restore a soft-deleted table or create it with its former settings; its entities are written later."""
        action, by = TableAction.CREATE if deleted is None else TableAction.RESTORE, self._by
        if deleted is not None:
            tables.restore(deleted, by=by, even_expired=True)
        else:
            described = {"description": source.description, "tags": source.tags}
            made = tables.create(self._account, source.name, by=by, **described)
            if source.throughput:
                tables.change(made, by=by, throughput=source.throughput)
        self.outcome.tables.append(TableOutcome(source.name, action=action))

    def apply(
        self, progress: Progress[Arguments] | None = None, *, limit: timedelta = COLLECTION_LIMIT
    ) -> Outcome:
        """Bring the tables to the snapshot's state; without ``progress``, only preview the outcome."""
        self._application().run(progress, limit=limit)
        # whatever became of them first, those that are deleted at the end
        self.outcome.tables.sort(key=lambda it: (it.is_deleted, it.name.lower(), it.name))
        return self.outcome

    def _application(self) -> Application:
        """Build the application of the comparison between the present and the tables to restore."""
        restore_request = self._wanted
        then = sides.of_snapshot(self._snapshot, self._account, only=[it.folded_name for it in self._tables])
        comparison = comparing.compare(sides.live(self._account), then)
        deletes = set(map(self._fold, restore_request.deletes))
        selection = Selection(
            [
                it.name
                for it in comparison.tables
                if it.right is not None or restore_request.deletes_new or self._fold(it.name) in deletes
            ],
            {} if restore_request.keys is None else {self._tables[0].name: restore_request.keys},
            policies=restore_request.with_policies,
            service_properties=restore_request.with_settings,
        )
        return Application(comparison, Target.LEFT, selection, self._by, outcome=self.outcome)
