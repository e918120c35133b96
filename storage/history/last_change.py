"""Last change of an entity or table: author, time, and restorable state."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.activity.actors import SAS_LABEL, actor_of
from storage.domain.access.actor import Actor
from storage.domain.entities.entity import EntityKey, StoredEntity
from storage.domain.errors import StorageError
from storage.domain.history.recorded import Op, RecordedChange
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_ticks
from storage.history import versions
from storage.history.versions import is_entity_key
from storage.models import Account, Activity, Table
from storage.tables.subject import TableVerb


@dataclass(frozen=True, slots=True)
class TableDeletion:
    """The deletion of a table."""

    name: str
    at: datetime
    by: Actor | None  # None if the log no longer says it
    table: Table | None  # the table that can be restored; None if its retention is over


def of_entity(table: Table, key: EntityKey, now: StoredEntity | None) -> RecordedChange | None:
    """Return the change that produced the state ``now`` of an entity; None if it is unknown."""
    if not is_entity_key(key):
        return None
    recorded = versions.newest(table, key)
    if recorded is not None and _left(recorded, now):
        return recorded
    done = activity.of_version(table, key, None if now is None else now.timestamp)
    if done is None:
        return None
    op, ticks = (Op.DELETE, to_ticks(done.at)) if now is None else (Op.UPDATE, now.timestamp)
    return RecordedChange(0, op, table.name, table.pk, key, ticks, actor_of(done), None, now)


def _left(change: RecordedChange, now: StoredEntity | None) -> bool:
    """Return whether a change produced this state of an entity."""
    is_deletion = change.op is Op.DELETE
    return is_deletion if now is None else not is_deletion and change.ticks == now.timestamp


def of_table(account: Account, name: str, until: datetime | None = None) -> TableDeletion | None:
    """Return the last deletion of a table of this name, until a time; None if the table exists or never did."""
    kind = AccountKind(account.kind)
    try:
        own = Table.objects.filter(account=account, folded_name=fold_table_name(name, kind))
    except StorageError:
        return None
    if own.filter(deleted_at=None).exists():
        return None
    if until is not None:
        own = own.filter(deleted_at__lt=until)
    deleted = own.order_by("-deleted_at").first()
    done = _deletion(account, name if deleted is None else deleted.name, kind, until)
    if deleted is not None and deleted.deleted_at is not None:
        is_kept = deleted.kept_until is not None and deleted.kept_until > timezone.now()
        by = None if done is None else actor_of(done)
        return TableDeletion(deleted.name, deleted.deleted_at, by, deleted if is_kept else None)
    return None if done is None else TableDeletion(done.table_name, done.at, actor_of(done), None)


def renamed_to(account: Account, name: str) -> str | None:
    """Return the present name of the table that was called so; None if there is none, or another has the name now."""
    try:
        folded = fold_table_name(name, AccountKind(account.kind))
    except StorageError:
        return None
    renaming_filter = ActivityFilter(account_ids=[account.pk], verbs=(TableVerb.RENAME,))
    present = Table.objects.existing().filter(account=account)
    if present.filter(folded_name=folded).exists():
        return None
    renamings = activity.find(renaming_filter).filter(detail__from__iexact=folded)
    table_ids = list(renamings.values_list("table_id", flat=True)[:1])
    return present.filter(pk__in=table_ids).values_list("name", flat=True).first()


def _deletion(account: Account, name: str, kind: AccountKind, until: datetime | None) -> Activity | None:
    deletion_filter = ActivityFilter(
        account_ids=[account.pk], verbs=(TableVerb.DELETE,), table=name, until=until
    )
    deletions = activity.find(deletion_filter)
    if kind is AccountKind.COSMOS:
        deletions = deletions.filter(table_name=name)  # others may differ in letter case
    return deletions.annotate(sas_label=SAS_LABEL).first()
