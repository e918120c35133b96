"""Changes of entities by users, each with an activity that references the history."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Final

from django.db import transaction
from django.db.models import Func, JSONField

from storage.accounts import accounts
from storage.activity import activity
from storage.activity.activity import make_change
from storage.core.verbs import Verb
from storage.domain.access.actor import Actor
from storage.domain.entities.changes import Change, Delete, Insert, Update, Upsert
from storage.domain.entities.entity import (
    Entity,
    EntityKey,
    StoredEntity,
    read_stored,
    write_sorted,
    write_stored,
)
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    InvalidDuplicateRow,
    InvalidInput,
    ResourceNotFound,
    StorageError,
)
from storage.domain.refusals import Reason
from storage.domain.values.dialects import LONGEST_KEY, Dialect
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import check_entity_key
from storage.entities.subject import EntityVerb
from storage.history import key_changes
from storage.metrics import table_use
from storage.models import Activity, Table
from storage.relations import history, table_relations
from storage.sql import batch, pages
from storage.sql.changes import span_of_last
from storage.sql.django import run, walk
from storage.sql.history import Recorder
from storage.sql.relations import relation_of

# bytes of all changed entities together, which an undo holds in memory
LARGEST: Final = 64 * 1024 * 1024
_SURELY_FEW: Final = 10


@dataclass(slots=True)
class Edit:
    """Change of an entity with its states before, if it was read, and after."""

    change: Change
    before: StoredEntity | None = None
    after: StoredEntity | None = None  # None: deleted
    timestamp: int = 0  # ticks; for a deletion, the entity's last one

    @property
    def is_merge(self) -> bool:
        return isinstance(self.change, Update | Upsert) and self.change.merge

    def start_from(self, before: StoredEntity) -> None:
        """Turn a merge into a replacement of the locked row, so that the result is known without another read."""
        self.before = before
        match self.change:
            case (Update(entity, merge=True) | Upsert(entity, merge=True)) as change:
                merged = {**read_stored(before).properties, **entity.properties}
                condition = change.condition if isinstance(change, Update) else ANY
                self.change = Update(Entity(entity.key, merged, entity.kind), condition, merge=False)

    def finish(self, timestamp: int) -> None:
        """Store the resulting row, unless the change is a merge."""
        self.timestamp = timestamp
        if not isinstance(self.change, Delete) and not self.is_merge:
            write = write_stored if isinstance(self.change, Insert) else write_sorted
            self.after = write(self.change.entity, timestamp)


@dataclass(frozen=True, slots=True)
class Applied:
    activity: Activity
    edits: Mapping[EntityKey, Edit]  # in the order of the changes

    @property
    def after(self) -> dict[EntityKey, StoredEntity]:
        """Return the entities as stored now, without deleted ones."""
        return {key: edit.after for key, edit in self.edits.items() if edit.after}


@transaction.atomic
def apply(
    table: Table,
    changes: Sequence[Change],
    *,
    by: Actor,
    verb: Verb | None = None,
    undoes: Activity | None = None,
    known: StoredEntity | None = None,
) -> Applied:
    """Apply changes to distinct entities; raises ChangeSetError with the index of the first failure."""
    account = accounts.writable(table.account)
    edits = _make_edits(changes, AccountKind(account.kind))
    _check_size(table, edits)
    recorder = history.recorder(account, by)
    # without a recorder, an undo needs the entities as they are; so does a merge
    if recorder is None or any(edit.is_merge for edit in edits.values()):
        for key, stored in _before(table, edits, known).items():
            edits[key].start_from(stored)
    _run(table, edits, recorder)
    # a remaining merge may have met an entity that did not exist before
    for key, stored in _get_many(table, [key for key, edit in edits.items() if edit.is_merge]).items():
        edits[key].after = stored
    table_use.record_write(table)
    done = activity.record(
        verb or _verb(changes),
        # the log shows the activity and not the recorded changes of the same request
        replace(by, request_id=recorder.request if recorder else by.request_id or str(uuid.uuid4())),
        account=account,
        table=table,
        undoes=undoes,
        edited={key: edit.timestamp if edit.after else None for key, edit in edits.items()},
        recorded=_recorded(table, recorder, len(edits)),
    )
    if recorder is None:
        done.unrecorded = [make_change(done, key, edit.before, edit.after) for key, edit in edits.items()]
    return Applied(done, edits)


def _recorded(table: Table, recorder: Recorder | None, number: int) -> Func | list[int] | None:
    if recorder is None:
        return None
    if not table.form.capabilities.records_in_account:
        return []
    return Func(template=span_of_last(recorder.relation, table.pk, number), output_field=JSONField())


@transaction.atomic
def delete(table: Table, keys: Sequence[EntityKey], *, by: Actor) -> Applied | None:
    """Delete the existing entities among these keys, in any version; return None if there are none."""
    accounts.writable(table.account)
    _check_size(table, keys)
    existing = _get_many(table, keys, lock=True)
    return apply(table, [Delete(key, ANY) for key in existing], by=by) if existing else None


@transaction.atomic
def change_key(
    table: Table, old: EntityKey, new: EntityKey, condition: Precondition, *, by: Actor
) -> Applied:
    """Change the key of an entity: insert it under the new key and delete the old one; raises StorageError.

    The service has no such operation; it would take a change set, or two requests across partitions.
    """
    if new == old:
        raise EntityAlreadyExists
    current = _get_many(table, [old], lock=True).get(old)
    if current is None:
        raise ResourceNotFound
    copy = Insert(Entity(new, read_stored(current).properties))
    try:
        done = apply(table, [copy, Delete(old, condition)], by=by, verb=EntityVerb.REKEY)
    except ChangeSetError as failure:
        raise failure.error from None
    key_changes.move(table, [(old, new)])
    return done


def apply_one(table: Table, change: Change, *, by: Actor, known: StoredEntity | None = None) -> Applied:
    """Apply one change; raises its StorageError directly."""
    try:
        return apply(table, [change], by=by, known=known)
    except ChangeSetError as failure:
        raise failure.error from None


def _make_edits(changes: Sequence[Change], kind: AccountKind) -> dict[EntityKey, Edit]:
    """Return an edit for each change, in order, after validating the keys for this kind of account.

    Raises ChangeSetError for an invalid or repeated key.
    """
    edits: dict[EntityKey, Edit] = {}
    dialect = Dialect(kind, LONGEST_KEY)
    for index, change in enumerate(changes):
        try:
            if change.key in edits:
                raise InvalidDuplicateRow
            if not isinstance(change, Delete):
                change.entity.kind = kind
                check_entity_key(*change.key, dialect)
        except StorageError as error:
            raise ChangeSetError(index, error) from None
        edits[change.key] = Edit(change)
    return edits


def _check_size(table: Table, keys: Collection[EntityKey]) -> None:
    if len(keys) > _SURELY_FEW and walk(pages.total_bytes(relation_of(table), keys)) > LARGEST:
        raise InvalidInput(Reason.CHANGE_TOO_LARGE.of(most=LARGEST >> 20))


def _before(
    table: Table, edits: Mapping[EntityKey, Edit], known: StoredEntity | None
) -> Mapping[EntityKey, StoredEntity]:
    """Read the affected entities, locked in key order."""
    match [edit.change for edit in edits.values()]:
        case [(Update() | Delete()) as change] if known is not None and change.key == known.key:
            # the change fails unless the entity is still this version, so no lock is needed
            if change.condition.expected == known.timestamp:
                return {known.key: known}
    return _get_many(table, edits, lock=True)


def _get_many(
    table: Table, keys: Collection[EntityKey], *, lock: bool = False
) -> dict[EntityKey, StoredEntity]:
    return walk(pages.get_many(relation_of(table), keys, lock=lock)) if keys else {}


def _run(table: Table, edits: Mapping[EntityKey, Edit], recorder: Recorder | None) -> None:
    """Apply the changes partition by partition, in the order of row locks."""
    table_relations.complete(table.pk)
    relation = relation_of(table)
    partition_key = attrgetter("partition_key")
    for _, several in groupby(sorted(edits, key=partition_key), partition_key):
        keys = list(several)
        try:
            timestamps = run(batch.apply(relation, [edits[key].change for key in keys], recorder))
        except ChangeSetError as failure:
            raise ChangeSetError([*edits].index(keys[failure.index]), failure.error) from None
        for key, timestamp in zip(keys, timestamps, strict=True):
            edits[key].finish(timestamp)


def _verb(changes: Sequence[Change]) -> Verb:
    kinds = {type(change) for change in changes}
    if kinds == {Insert}:
        return EntityVerb.INSERT
    return EntityVerb.DELETE if kinds == {Delete} else EntityVerb.CHANGE
