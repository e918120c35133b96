"""Changes of entities by users: an entry of the activity log that leads to their record in the history.

Several changes are applied all or none, across partitions too, with the statements of the Table service.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.db.models import Func, JSONField

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
from storage.domain.values.etag import ANY, Precondition
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import LONGEST_KEY, check_entity_key
from storage.entities.subject import EntityVerb
from storage.models import Activity, Table
from storage.operations.accounts import accounts
from storage.operations.activity import activity
from storage.operations.activity.activity import make_change
from storage.operations.changes import key_changes
from storage.operations.counting import table_use
from storage.operations.relations import history, table_relations
from storage.sql import batch, pages
from storage.sql.changes import span_of_last
from storage.sql.distribution import capabilities_of
from storage.sql.django import run, walk
from storage.sql.history import Recorder
from storage.sql.relations import relation_of

# bytes of all changed entities together, which an undo holds in memory
LARGEST: Final = 64 * 1024 * 1024
_SURELY_FEW: Final = 10


@dataclass(frozen=True, slots=True)
class Applied:
    """``timestamps`` in the order of the changes, in ticks: the new one, or the last one of what was deleted.

    ``after`` holds the entities as they are stored now, without the deleted ones.
    """

    activity: Activity
    timestamps: tuple[int, ...]
    after: Mapping[EntityKey, StoredEntity]


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
    """Apply changes, each to another entity; raises ChangeSetError with the index of the first that fails.

    ``known``: an entity as the caller has read it. It is not read again if its change applies to that version only.
    """
    account = accounts.writable(table.account)
    _check_keys(changes)
    _set_kind(changes, AccountKind(account.kind))
    _check_size(table, [change.key for change in changes])
    recorder = history.recorder(account, by)
    before = _before(table, changes, known, is_recorded=recorder is not None)
    whole = [_in_place(change, before.get(change.key)) for change in changes]
    timestamps = _apply(table, whole, recorder)
    table_use.record_write(table)
    after = _after(table, whole, timestamps)
    done = activity.record(
        verb or _verb(changes),
        # the log shows the activity and not the recorded changes of the same request
        replace(by, request_id=recorder.request if recorder else by.request_id or str(uuid.uuid4())),
        account=account,
        table=table,
        undoes=undoes,
        edited={it.key: after[it.key].timestamp if it.key in after else None for it in changes},
        recorded=_recorded(table, recorder, len(changes)),
    )
    if recorder is None:
        done.unrecorded = [make_change(done, it.key, before.get(it.key), after.get(it.key)) for it in changes]
    return Applied(done, timestamps, after)


def _recorded(table: Table, recorder: Recorder | None, number: int) -> Func | list[int] | None:
    if recorder is None:
        return None
    if not capabilities_of(table).records_in_account:
        return []
    return Func(template=span_of_last(recorder.relation, table.pk, number), output_field=JSONField())


@transaction.atomic
def delete(table: Table, keys: Sequence[EntityKey], *, by: Actor) -> Applied | None:
    """Delete the entities of these keys that exist, in any version; return None if there are none."""
    accounts.writable(table.account)
    _check_size(table, keys)
    found = _found(table, keys, lock=True)
    return apply(table, [Delete(key, ANY) for key in found], by=by) if found else None


@transaction.atomic
def change_key(
    table: Table, old: EntityKey, new: EntityKey, condition: Precondition, *, by: Actor
) -> Applied:
    """Give an entity another key: insert it under the new one and delete the old; raises StorageError.

    The service has no such operation: there it takes a change set, or two requests for different partitions.
    """
    if new == old:
        raise EntityAlreadyExists
    found = _found(table, [old], lock=True).get(old)
    if found is None:
        raise ResourceNotFound
    copy = Insert(Entity(new, read_stored(found).properties))
    try:
        done = apply(table, [copy, Delete(old, condition)], by=by, verb=EntityVerb.REKEY)
    except ChangeSetError as failure:
        raise failure.error from None
    key_changes.move(table, [(old, new)])
    return done


def apply_one(table: Table, change: Change, *, by: Actor, known: StoredEntity | None = None) -> Applied:
    """Apply one change; raises its StorageError instead of a ChangeSetError."""
    try:
        return apply(table, [change], by=by, known=known)
    except ChangeSetError as failure:
        raise failure.error from None


def _check_keys(changes: Sequence[Change]) -> None:
    seen: set[EntityKey] = set()
    for index, change in enumerate(changes):
        if change.key in seen:
            raise ChangeSetError(index, InvalidDuplicateRow())
        seen.add(change.key)


def _set_kind(changes: Sequence[Change], kind: AccountKind) -> None:
    """Make the entities those of an account of this kind, whose keys they must have."""
    for index, change in enumerate(changes):
        if isinstance(change, Delete):
            continue
        change.entity.kind = kind
        try:
            check_entity_key(*change.key, limit=LONGEST_KEY, kind=kind)
        except StorageError as error:
            raise ChangeSetError(index, error) from None


def _check_size(table: Table, keys: Sequence[EntityKey]) -> None:
    if len(keys) > _SURELY_FEW and walk(pages.total_bytes(relation_of(table), keys)) > LARGEST:
        raise InvalidInput(Reason.CHANGE_TOO_LARGE.of(most=LARGEST >> 20))


def _before(
    table: Table, changes: Sequence[Change], known: StoredEntity | None, *, is_recorded: bool
) -> dict[EntityKey, StoredEntity]:
    """Return the entities as they are if a merge, or the way back of what is not recorded, needs them.

    Then they are locked in the order of their keys.
    """
    if is_recorded and not any(isinstance(it, Update | Upsert) and it.merge for it in changes):
        return {}
    match changes:
        case [(Update() | Delete()) as change] if known is not None and change.key == known.key:
            # the change fails unless the entity is still this version, so no lock is needed
            if change.condition.expected == known.timestamp:
                return {known.key: known}
    return _found(table, [change.key for change in changes], lock=True)


def _after(
    table: Table, changes: Sequence[Change], timestamps: Sequence[int]
) -> dict[EntityKey, StoredEntity]:
    merges = [change.key for change in changes if isinstance(change, Upsert) and change.merge]
    after = _found(table, merges)  # may have met an entity that was not there before
    for change, timestamp in zip(changes, timestamps, strict=True):
        if not isinstance(change, Delete) and change.key not in after:
            write = write_stored if isinstance(change, Insert) else write_sorted
            after[change.key] = write(change.entity, timestamp)
    return after


def _in_place(change: Change, before: StoredEntity | None) -> Change:
    """Turn a merge into a replacement of the locked row, which is known then without being read again."""
    if not isinstance(change, Update | Upsert) or not change.merge or before is None:
        return change
    merged = dict(read_stored(before).properties)
    merged.update(change.entity.properties)
    condition = change.condition if isinstance(change, Update) else ANY
    return Update(Entity(change.key, merged), condition, merge=False)


def _found(table: Table, keys: Sequence[EntityKey], *, lock: bool = False) -> dict[EntityKey, StoredEntity]:
    return walk(pages.get_many(relation_of(table), keys, lock=lock)) if keys else {}


def _apply(table: Table, changes: Sequence[Change], recorder: Recorder | None) -> tuple[int, ...]:
    """Apply the changes partition by partition, in the order in which the rows are locked."""
    table_relations.complete(table.pk)
    relation, timestamps = relation_of(table), [0] * len(changes)
    partitions: dict[str, list[int]] = {}
    for index, change in enumerate(changes):
        partitions.setdefault(change.key.partition_key, []).append(index)
    for _, indices in sorted(partitions.items()):
        try:
            done = run(batch.apply(relation, [changes[index] for index in indices], recorder))
        except ChangeSetError as failure:
            raise ChangeSetError(indices[failure.index], failure.error) from None
        for index, timestamp in zip(indices, done, strict=True):
            timestamps[index] = timestamp
    return tuple(timestamps)


def _verb(changes: Sequence[Change]) -> Verb:
    kinds = {type(change) for change in changes}
    if kinds == {Insert}:
        return EntityVerb.INSERT
    return EntityVerb.DELETE if kinds == {Delete} else EntityVerb.CHANGE
