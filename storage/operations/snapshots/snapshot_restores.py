"""Restore tables, entities, policies and service properties from a snapshot, and reset branches.

Only what differs is written, as ordinary recorded changes that never overwrite what is newer than their preview.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

from django.db import transaction
from django.utils import timezone

from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason
from storage.domain.service.activity import Verb
from storage.domain.service.snapshots import SnapshotReason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.models import Account, Activity, Branch, Snapshot, SnapshotTable, StoredAccessPolicy, Table
from storage.operations.access import policies
from storage.operations.accounts import accounts, service_properties
from storage.operations.activity import long_operations
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.changes import reverting
from storage.operations.changes.reverting import Reverted
from storage.operations.relations import snapshot_copies, table_relations
from storage.operations.snapshots import snapshots
from storage.operations.snapshots.snapshots import SnapshotError
from storage.operations.tables import tables
from storage.sql import django as sql
from storage.sql import snapshots as statements
from storage.sql.past import Past, as_of
from storage.sql.relations import relation_name
from storage.sql.restoring import Images
from storage.sql.snapshots import ImageCount

_EXAMPLES: Final = 20  # skipped entities that the activity log names


class TableAction(StrEnum):
    """What a restore does with a table as such."""

    KEEP = "keep"
    CREATE = "create"
    RESTORE = "restore"  # it is deleted, but not dropped yet
    DELETE = "delete"  # it is newer than the snapshot


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What to restore. ``tables``: by name, None: all. ``keys``: of entities of the only table, None: all.

    ``deletes_new``: tables that are newer than a snapshot of all tables are deleted when all are restored; else only
    those that ``deletes`` names.
    """

    tables: Sequence[str] | None = None
    keys: Sequence[EntityKey] | None = None
    with_policies: bool = False
    with_settings: bool = False
    deletes_new: bool = False
    deletes: Sequence[str] = ()


def _everything(snapshot: Snapshot) -> RestoreRequest:
    return RestoreRequest(with_policies=True, with_settings=True, deletes_new=snapshot.is_whole)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What a restore does to a table."""

    name: str
    action: TableAction
    count: ImageCount
    changes_policies: bool = False

    @property
    def is_unchanged(self) -> bool:
        return self.action is TableAction.KEEP and not self.count.total and not self.changes_policies


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore would do now."""

    tables: Sequence[TablePlan]
    changes_settings: bool

    @property
    def entities(self) -> int:
        return sum(it.count.total for it in self.tables)

    @property
    def is_empty(self) -> bool:
        return not self.changes_settings and all(it.is_unchanged for it in self.tables)


@dataclass(slots=True)
class Restored:
    """What a restore has done: entities by table, and the snapshot of the state before, if one was taken."""

    tables: dict[str, Reverted] = field(default_factory=dict)
    actions: dict[str, TableAction] = field(default_factory=dict)
    policies: set[str] = field(default_factory=set)  # tables whose policies were restored
    changes_settings: bool = False
    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    before: Snapshot | None = None
    activity: Activity | None = None
    seconds: float = 0

    @property
    def entities(self) -> int:
        return sum(it.written for it in self.tables.values())

    @property
    def skipped(self) -> int:
        return sum(it.skipped for it in self.tables.values())


@dataclass(frozen=True, slots=True)
class _Pair:
    """A table of a snapshot, and the one that has its name now; ``deleted``: the one it was, if it can be restored."""

    found: SnapshotTable
    present: Table | None
    deleted: Table | None

    @property
    def action(self) -> TableAction:
        if self.present is not None:
            return TableAction.KEEP
        return TableAction.CREATE if self.deleted is None else TableAction.RESTORE


def preview(snapshot: Snapshot, wanted: RestoreRequest, *, limit: timedelta | None = None) -> RestorePlan:
    """Return what a restore would change now; raises SnapshotError for tables that the snapshot does not have.

    With a ``limit`` for each table, raises OperationTimedOut.
    """
    plans = []
    for pair in _pairs(snapshot, wanted):
        count = _count(_images(pair, wanted.keys), limit)
        changes_policies = wanted.with_policies and _changes_policies(pair)
        plans.append(TablePlan(pair.found.name, pair.action, count, changes_policies))
    plans += [
        TablePlan(it.name, TableAction.DELETE, ImageCount()) for it in _tables_to_delete(snapshot, wanted)
    ]
    return RestorePlan(plans, wanted.with_settings and _changes_settings(snapshot))


def _count(images: Images, limit: timedelta | None) -> ImageCount:
    statement = statements.count(images)
    return sql.run(statement) if limit is None else sql.run_limited(statement, limit)


def restore(
    snapshot: Snapshot,
    wanted: RestoreRequest,
    *,
    by: Actor = SERVER,
    takes_snapshot: bool = True,
    undoes: Activity | None = None,
    finish: Callable[[Restored], None] = lambda restored: None,
) -> Restored:
    """Restore what is wanted, after a snapshot of the present.

    Entities that are changed meanwhile are skipped. If the process dies, the activity log says what was restored,
    and another restore does the rest. ``finish`` is called in the last transaction. Raises SnapshotError, and
    InsufficientAccountPermissions in a read-only account.
    """
    began = time.perf_counter()
    account = snapshot.account
    accounts.check_writable(account)
    pairs = _pairs(snapshot, wanted)
    newer = _tables_to_delete(snapshot, wanted)
    by = replace(by, request_id=by.request_id or str(uuid.uuid4()))
    restored = Restored()
    with long_operations.running(Verb.SNAPSHOT_RESTORE, account, by=by, undoes=undoes) as operation:

        def save() -> None:
            operation.save(_detail(snapshot, wanted, restored))

        def save_snapshot(before: Snapshot) -> None:
            restored.before = before
            save()

        if takes_snapshot:
            name = f"before-restore-{snapshot.name}"
            snapshots.take_automatic(account, name, SnapshotReason.RESTORE, by=by, save=save_snapshot)
        for pair in pairs:
            _restore_table(pair, wanted, restored, by, save)
        for table in newer:
            with invalidating_catalogs():
                tables.delete(account.pk, table.name, by=by, keep=tables.DELETED_TABLE_RETENTION)
                restored.deleted.append(table.name)
                save()
        if wanted.with_settings and _changes_settings(snapshot):
            properties = service_properties.read_stored(snapshot.service_properties)
            service_properties.replace(account.pk, lambda _: properties, by=by)
            restored.changes_settings = True
        restored.seconds = time.perf_counter() - began
        with transaction.atomic():
            restored.activity = operation.finish(_detail(snapshot, wanted, restored))
            finish(restored)
    return restored


def reset(branch: Branch, *, by: Actor = SERVER) -> Restored:
    """Make a branch what it was when it was made: tables, policies and service properties."""
    if branch.origin is None:
        raise SnapshotError(Reason.NO_ORIGIN, account=branch.account.name)

    def finish(restored: Restored) -> None:
        branch.reset_at, branch.reset_entities = timezone.now(), restored.entities
        branch.reset_seconds = restored.seconds
        branch.save(update_fields=("reset_at", "reset_entities", "reset_seconds"))

    return restore(branch.origin, _everything(branch.origin), by=by, takes_snapshot=False, finish=finish)


def reset_to(snapshot: Snapshot, *, by: Actor = SERVER) -> Restored:
    """Make an account what it was when a snapshot was taken, after a snapshot of the present."""
    return restore(snapshot, _everything(snapshot), by=by)


def undo(account: Account, done: Activity, *, by: Actor) -> Activity:
    """Restore the snapshot that a restore took before it; raises SnapshotNotFound when that is gone."""
    before = snapshots.get(account, str(done.detail["before"]))
    wanted = RestoreRequest(
        with_policies=bool(done.detail["policies"]),
        with_settings=bool(done.detail["settings"]),
        deletes=done.detail["created"],
    )
    restored = restore(before, wanted, by=by, undoes=done)
    assert restored.activity is not None
    return restored.activity


def _tables_to_delete(snapshot: Snapshot, wanted: RestoreRequest) -> list[Table]:
    """Return the tables that a snapshot of all tables does not have, or those that are named.

    Raises SnapshotError if it is not known which are newer, or if only some tables are restored.
    """
    if wanted.deletes_new and not snapshot.is_whole:
        raise SnapshotError(Reason.SNAPSHOT_OF_SOME_TABLES, snapshot=snapshot.name)
    if wanted.deletes_new and wanted.tables is not None:
        raise SnapshotError(Reason.ONLY_SOME_RESTORED)
    found = Table.objects.own().filter(account=snapshot.account).order_by("folded_name")
    if wanted.deletes_new:
        return list(found.exclude(folded_name__in=snapshot.tables.values("folded_name")))
    kind = AccountKind(snapshot.account.kind)
    return list(found.filter(folded_name__in=[fold_table_name(name, kind) for name in wanted.deletes]))


# one table


def _pairs(snapshot: Snapshot, wanted: RestoreRequest) -> list[_Pair]:
    found = list(snapshot.tables.select_related("snapshot").order_by("folded_name"))
    if wanted.tables is not None:
        kind = AccountKind(snapshot.account.kind)
        names = {fold_table_name(name, kind) for name in wanted.tables}
        missing = names - {it.folded_name for it in found}
        if missing:
            raise SnapshotError(Reason.NO_TABLE_IN_SNAPSHOT, snapshot=snapshot.name, table=min(missing))
        found = [it for it in found if it.folded_name in names]
    if wanted.keys is not None and len(found) != 1:
        raise SnapshotError(Reason.ONE_TABLE)
    present = {
        it.folded_name: it
        for it in Table.objects.own().filter(account=snapshot.account).select_related("account")
    }
    deleted = Table.objects.filter(pk__in=[it.table_id for it in found]).exclude(deleted_at=None)
    by_id = {it.pk: it for it in deleted.select_related("account")}
    return [_Pair(it, present.get(it.folded_name), by_id.get(it.table_id)) for it in found]


def _images(pair: _Pair, keys: Sequence[EntityKey] | None) -> Images:
    """Return what to write so that the table, a deleted one once it is restored, is as in the snapshot."""
    found, past = pair.found, snapshot_copies.past_of(pair.found)
    table = pair.present or pair.deleted
    if table is not None:
        table_relations.refuse_distributed(table)
    if pair.present is None:
        # its entities appear, whether they are inserted or restored with it
        return _read_past(found, past, statements.all_images(_source(found, past), keys))
    if not found.is_copied and pair.present.pk == found.table_id:
        return statements.changed_images(past, keys)
    target = relation_name(pair.present.pk)
    return _read_past(found, past, statements.different_images(_source(found, past), target, keys))


def _source(found: SnapshotTable, past: Past) -> str:
    return past.source if found.is_copied else relation_name(found.table_id)


def _read_past(found: SnapshotTable, past: Past, images: Images) -> Images:
    if found.is_copied:
        return images
    statement = as_of(statements.as_statement(images), past)
    return Images(statement.text, statement.parameters)


def _restore_table(
    pair: _Pair, wanted: RestoreRequest, restored: Restored, by: Actor, save: Callable[[], None]
) -> None:
    found, table, action = pair.found, pair.present, pair.action
    if table is None:
        with transaction.atomic():
            table = _make_table(pair, by)
            restored.created.append(table.name)
            save()
        pair = replace(pair, present=table, deleted=None)
    restored.actions[table.name] = action
    reverted = restored.tables[table.name] = Reverted()
    reverting.apply_images(table, _images(pair, wanted.keys), by=by, into=reverted, save=save)
    if wanted.with_policies and _changes_policies(pair):
        policies.replace(table.account_id, table.folded_name, policies.read(found.policies), by=by)
        restored.policies.add(table.name)


def _make_table(pair: _Pair, by: Actor) -> Table:
    found = pair.found
    if pair.deleted is not None:
        tables.restore(pair.deleted.pk, by=by, even_expired=True)
        return Table.objects.select_related("account").get(pk=pair.deleted.pk)
    account = found.snapshot.account
    made = tables.create(account.pk, found.name, by=by, description=found.description, tags=found.tags)
    if found.throughput:
        tables.change(made, by=by, throughput=found.throughput)
    return made


def _changes_policies(pair: _Pair) -> bool:
    if AccountKind(pair.found.snapshot.account.kind) is AccountKind.COSMOS:
        return False
    table = pair.present or pair.deleted
    if table is None:
        return bool(pair.found.policies)
    stored = StoredAccessPolicy.objects.filter(table=table).order_by("place")
    return bool(policies.write([policies.identifier(it) for it in stored]) != pair.found.policies)


def _changes_settings(snapshot: Snapshot) -> bool:
    if AccountKind(snapshot.account.kind) is AccountKind.COSMOS:
        return False
    now = service_properties.get(snapshot.account_id)
    return now != service_properties.read_stored(snapshot.service_properties)


def _detail(snapshot: Snapshot, wanted: RestoreRequest, restored: Restored) -> dict[str, object]:
    return {
        "snapshot": snapshot.name,
        "before": restored.before.name if restored.before is not None else "",
        "tables": {
            name: [it.inserted, it.changed, it.deleted, it.skipped] for name, it in restored.tables.items()
        },
        "created": restored.created,
        "deleted": restored.deleted,
        "skipped": [
            [name, *it.key] for name, table in restored.tables.items() for it in table.examples[:_EXAMPLES]
        ],
        "policies": wanted.with_policies,
        "settings": wanted.with_settings,
    }
