"""The sides of a comparison: what an account, or a table of it, is or was."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db.models import Q, QuerySet

from storage.domain.entities.moments import Moment, read_moment
from storage.domain.errors import OutOfRangeInput, ServerBusy, StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.service.activity import Verb
from storage.domain.service.service_properties import DEFAULT_PROPERTIES
from storage.domain.service.sides import SideName
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_datetime
from storage.models import Account, Branch, Snapshot, SnapshotTable, StoredAccessPolicy, Table
from storage.operations.access import policies
from storage.operations.accounts import service_properties
from storage.operations.activity import activity
from storage.operations.activity.activity import ActivityFilter
from storage.operations.changes import past
from storage.operations.relations import snapshot_copies
from storage.operations.snapshots import snapshots
from storage.sql.distribution import capabilities_of
from storage.sql.past import Past

T = TypeVar("T", Table, SnapshotTable)


class SideNotFound(Refused):
    """There is no such table, snapshot or time."""


@dataclass(frozen=True, slots=True)
class SideTable:
    """A table on a side; ``past``: None if it is read as it is now; ``policies`` as operations.policies writes them."""

    name: str
    table_id: int
    past: Past | None
    description: str
    tags: Sequence[str]
    policies: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared with another side.

    ``tables`` by what identifies them in the account; ``service_properties`` as they are stored, None in Cosmos.
    ``known_tables``: what identifies the tables that it would have if they existed, for a snapshot or a branch of some
    tables, which says nothing about the others; None: all.
    """

    name: SideName
    account: Account
    moment: Moment | None
    tables: Mapping[str, SideTable]
    service_properties: Mapping[str, Any] | None
    known_tables: Collection[str] | None = None

    @property
    def is_live(self) -> bool:
        return self.moment is None

    @property
    def kind(self) -> AccountKind:
        return AccountKind(self.account.kind)


def find(name: SideName, account: Account) -> Side:
    """Find a side in its account; raises SideNotFound."""
    if not name.at:
        return _live(name, account)
    moment = read_moment(name.at)
    if moment is not None:
        return _as_of(name, account, moment)
    snapshot = snapshots.find(account, name.at)
    if snapshot is None:
        raise SideNotFound(Reason.NO_MOMENT, text=name.at, account=account.name)
    return _of_snapshot(name, account, snapshot)


def _live(name: SideName, account: Account) -> Side:
    found = _chosen(name, _tables(account, Q(deleted_at=None)), account)
    for table in found:
        if not capabilities_of(table).has_past:
            raise SideNotFound(Reason.DISTRIBUTED_NOT_COMPARED, table=table.name)
    settings = _Settings(account, found)
    return Side(name, account, None, settings.tables(found, {}), settings.properties, _given_tables(account))


def _as_of(name: SideName, account: Account, moment: Moment) -> Side:
    at = to_datetime(moment.ticks)
    since = past.kept_since(account.pk)
    if since is None:
        raise SideNotFound(Reason.ACCOUNT_HAS_NO_HISTORY, account=account.name)
    if at < since:
        raise SideNotFound(
            Reason.ACCOUNT_HISTORY_BEGINS, account=account.name, since=f"{since:%Y-%m-%dT%H:%M:%SZ}"
        )
    then = Q(created_at__lte=at) & (Q(deleted_at=None) | Q(deleted_at__gt=at))
    found = _chosen(name, _tables(account, then), account)
    try:
        pasts = {table.pk: past.find(table, moment) for table in found}
    except (OutOfRangeInput, ServerBusy) as error:
        raise SideNotFound(error.refusal) from None
    settings = _Settings(account, found)
    settings.go_back_to(at)
    return Side(
        name, account, moment, settings.tables(found, pasts), settings.properties, _given_tables(account)
    )


def _of_snapshot(name: SideName, account: Account, snapshot: Snapshot) -> Side:
    found = {
        it.folded_name: SideTable(
            it.name, it.table_id, snapshot_copies.past_of(it), it.description, it.tags, it.policies
        )
        for it in _chosen(name, snapshot.tables.select_related("snapshot").order_by("folded_name"), account)
    }
    properties = None
    if account.kind != AccountKind.COSMOS:
        stored = snapshot.service_properties
        properties = service_properties.write(DEFAULT_PROPERTIES) if stored is None else stored
    moment = snapshot_copies.moment_of(snapshot)
    known = _given_tables(account) if snapshot.is_whole else frozenset(found)
    return Side(name, account, moment, found, properties, known)


def _given_tables(account: Account) -> Collection[str] | None:
    """Return what identifies the tables that a branch of some tables was made with; None for any other account.

    They are those of its first snapshot. Without it, a table that was deleted since cannot be told from one that was
    not copied, so none are known.
    """
    branch = Branch.objects.filter(account=account, is_whole=False).first()
    if branch is None:
        return None
    given = SnapshotTable.objects.filter(snapshot=branch.origin_id)
    return frozenset(given.values_list("folded_name", flat=True))


class _Settings:
    """The settings of an account and its tables that are compared: as they are, or were."""

    def __init__(self, account: Account, tables: Sequence[Table]) -> None:
        self._account = account
        self._of_tables: dict[int, dict[str, Any]] = {
            table.pk: {"description": table.description, "tags": table.tags, "policies": []}
            for table in tables
        }
        for policy in StoredAccessPolicy.objects.filter(table__in=tables).order_by("table", "place"):
            self._of_tables[policy.table_id]["policies"] += policies.write([policies.identifier(policy)])
        is_cosmos = account.kind == AccountKind.COSMOS
        properties = None if is_cosmos else service_properties.write(service_properties.for_account(account))
        self.properties: Mapping[str, Any] | None = properties

    def go_back_to(self, at: datetime) -> None:
        """Make the settings those of a time, by what the activity log says of changes since."""
        later = ActivityFilter(account_ids=[self._account.pk], verbs=_SETTINGS, since=at)
        for done in activity.find(later):
            of_table = self._of_tables.get(done.table_id or 0, {})
            match done.effective_verb:
                case Verb.PROPERTIES_SET:
                    self.properties = done.before
                case Verb.POLICIES_SET:
                    of_table["policies"] = done.before
                case Verb.TABLE_CHANGE:
                    of_table.update(
                        {name: it for name, it in (done.before or {}).items() if name in of_table}
                    )

    def tables(self, found: Sequence[Table], pasts: Mapping[int, Past]) -> dict[str, SideTable]:
        return {
            table.folded_name: SideTable(
                table.name, table.pk, pasts.get(table.pk), **self._of_tables[table.pk]
            )
            for table in found
        }


_SETTINGS: Final = (Verb.TABLE_CHANGE, Verb.POLICIES_SET, Verb.PROPERTIES_SET)


def _tables(account: Account, condition: Q) -> QuerySet[Table]:
    own = Table.objects.filter(condition, account=account).exclude(folded_name__startswith="$")
    return own.order_by("folded_name")


def _chosen(name: SideName, tables: "QuerySet[T]", account: Account) -> list[T]:
    """Return the table that is named, or else all; raises SideNotFound."""
    if not name.table:
        return list(tables)
    try:
        folded = fold_table_name(name.table, AccountKind(account.kind))
    except StorageError:
        folded = ""
    table = tables.filter(folded_name=folded).first()
    if table is None:
        if name.at:
            raise SideNotFound(Reason.NO_TABLE_THEN, account=account.name, table=name.table, at=name.at)
        raise SideNotFound(Reason.NO_TABLE, account=account.name, table=name.table)
    return [table]
