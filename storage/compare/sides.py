"""Present or past states of an account or table, for comparison, restoration and branches."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db.models import Q, QuerySet

from storage.access import policies
from storage.access.subject import AccessVerb
from storage.accounts import service_properties
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.activity import ActivityFilter
from storage.compare.side_names import SideName
from storage.core.relation_forms import LOCAL, Ability, RelationForm
from storage.domain.entities.moments import Moment, read_moment
from storage.domain.errors import OutOfRangeInput, ServerBusy, StorageError
from storage.domain.refusals import Reason, Refused
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_datetime
from storage.history import past
from storage.models import Account, Branch, Snapshot, SnapshotTable, Table
from storage.relations import snapshot_copies
from storage.snapshots import snapshots
from storage.sql import django as sql
from storage.sql import past as past_of_entities
from storage.sql.past import Past
from storage.sql.relations import relation_name
from storage.sql.statement import Statement
from storage.tables.subject import TableVerb

T = TypeVar("T")
AnyTable = TypeVar("AnyTable", Table, SnapshotTable)


class SideNotFound(Refused):
    """The table, snapshot or point in time of a side does not exist."""


@dataclass(frozen=True, slots=True)
class SideTable:
    """Table on one side of a comparison."""

    table: Table | SnapshotTable
    past: Past | None  # None if it is read as it is now
    description: str
    tags: Sequence[str]
    policies: Sequence[Mapping[str, Any]]  # in the form of storage.access.policies

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def table_id(self) -> int:
        return self.table.table_id if isinstance(self.table, SnapshotTable) else self.table.pk

    @property
    def form(self) -> RelationForm:
        """Return the form of its relation; relations of snapshots are local."""
        return self.table.form if isinstance(self.table, Table) else LOCAL

    @property
    def timeline(self) -> Past | None:
        """Return the past of a table from its history; None for a present table or a snapshot's copy."""
        return self.past if self.past is not None and self.past.record else None

    @property
    def relation(self) -> str:
        """Return the name of the relation with the table's entities: the snapshot's copy, or else the live relation."""
        is_copy = self.past is not None and self.timeline is None
        return self.past.source if self.past is not None and is_copy else relation_name(self.table_id)

    def run(self, statement: Statement[T]) -> T:
        """Run a statement on the ``relation``."""
        timeline = self.timeline
        return sql.run(statement if timeline is None else past_of_entities.as_of(statement, timeline))


@dataclass(frozen=True, slots=True)
class Side:
    """One of two sides that are compared."""

    name: SideName
    account: Account
    moment: Moment | None
    tables: Mapping[str, SideTable]  # by their identity in the account
    service_properties: Mapping[str, Any] | None  # as they are stored, None in Cosmos
    # identities of the tables that it would have if they existed, for a snapshot or a branch of some tables,
    # which says nothing about the others; None for all
    known_tables: Collection[str] | None = None

    @property
    def is_live(self) -> bool:
        return self.moment is None

    @property
    def kind(self) -> AccountKind:
        return AccountKind(self.account.kind)


def find(name: SideName, account: Account) -> Side:
    """Find a side of a comparison in its account; raises SideNotFound."""
    moment = read_moment(name.at)
    if not name.at:
        side = live(account, name)
        _refuse_incomparable(side.tables.values())
    elif moment is not None:
        side = as_of(account, moment, name)
    else:
        snapshot = snapshots.find(account, name.at)
        if snapshot is None:
            raise SideNotFound(Reason.NO_MOMENT, text=name.at, account=account.name)
        side = of_snapshot(snapshot, account, name)
        if not snapshot.is_whole:
            return replace(side, known_tables=frozenset(side.tables))
    return replace(side, known_tables=_given_tables(account))


def _refuse_incomparable(tables: Iterable[Table | SideTable]) -> None:
    for table in tables:
        if reason := table.form.lacks.get(Ability.COMPARISON):
            raise SideNotFound(reason, table=table.name)


def live(account: Account, name: SideName | None = None) -> Side:
    """Return the present state of an account or one of its tables, including tables that cannot be compared."""
    name = name or SideName(account.name)
    chosen = _chosen(name, _tables(account, Q(deleted_at=None)), account)
    settings, pasts = _Settings(account, chosen), dict.fromkeys([it.pk for it in chosen])
    return Side(name, account, None, settings.tables(pasts), settings.properties)


def as_of(
    account: Account, moment: Moment, name: SideName | None = None, *, with_present_settings: bool = False
) -> Side:
    """Return the state of an account at a time, including its settings unless ``with_present_settings``."""
    name = name or SideName(account.name, "", str(moment))
    at = to_datetime(moment.ticks)
    since = past.kept_since(account)
    if since is None:
        raise SideNotFound(Reason.ACCOUNT_HAS_NO_HISTORY, account=account.name)
    if at < since:
        raise SideNotFound(
            Reason.ACCOUNT_HISTORY_BEGINS, account=account.name, since=f"{since:%Y-%m-%dT%H:%M:%SZ}"
        )
    then = Q(created_at__lte=at) & (Q(deleted_at=None) | Q(deleted_at__gt=at))
    chosen = _chosen(name, _tables(account, then), account)
    _refuse_incomparable(chosen)
    try:
        pasts = {table.pk: past.find(table, moment) for table in chosen}
    except (OutOfRangeInput, ServerBusy) as error:
        raise SideNotFound(error.refusal) from None
    settings = _Settings(account, chosen)
    if not with_present_settings:
        settings.go_back_to(at)
    return Side(name, account, moment, settings.tables(pasts), settings.properties)


def of_snapshot(
    snapshot: Snapshot,
    account: Account,
    name: SideName | None = None,
    *,
    only: Collection[str] | None = None,
) -> Side:
    """Return the state of an account in one of its snapshots; ``only`` limits it to tables with these folded names."""
    name = name or SideName(account.name, "", snapshot.name)
    tables = snapshot.tables.select_related("snapshot").order_by("folded_name")
    chosen = _chosen(name, tables if only is None else tables.filter(folded_name__in=only), account)
    side_tables = {
        it.folded_name: SideTable(it, snapshot_copies.past_of(it), it.description, it.tags, it.policies)
        for it in chosen
    }
    properties = None
    if account.kind != AccountKind.COSMOS:
        properties = service_properties.write(service_properties.read_stored(snapshot.service_properties))
    return Side(name, account, snapshot_copies.moment_of(snapshot), side_tables, properties)


def _given_tables(account: Account) -> Collection[str] | None:
    """Return the folded names of tables with which a partial branch was created; None for any other account.

    They are taken from the branch's first snapshot. Without that snapshot the result is empty, as a deleted
    table cannot be told from one that was never copied.
    """
    branch = Branch.objects.filter(account=account, is_whole=False).first()
    if branch is None:
        return None
    given = SnapshotTable.objects.filter(snapshot=branch.origin_id)
    return frozenset(given.values_list("folded_name", flat=True))


class _Settings:
    """Compared settings of an account and its tables, at present or in the past."""

    def __init__(self, account: Account, tables: Sequence[Table]) -> None:
        self._account = account
        self._tables = tables
        stored = policies.written(tables)
        self._of_tables: dict[int, dict[str, Any]] = {
            it.pk: {"description": it.description, "tags": it.tags, "policies": stored[it.pk]}
            for it in tables
        }
        is_cosmos = account.kind == AccountKind.COSMOS
        properties = None if is_cosmos else service_properties.write(service_properties.get(account))
        self.properties: Mapping[str, Any] | None = properties

    def go_back_to(self, at: datetime) -> None:
        """Revert the settings to a time, by undoing later changes in the activity log."""
        later = ActivityFilter(account_ids=[self._account.pk], verbs=_SETTINGS, since=at)
        for done in activity.find(later):
            of_table = self._of_tables.get(done.table_id or 0, {})
            match done.effective_verb:
                case AccountVerb.PROPERTIES_SET:
                    self.properties = done.before
                case AccessVerb.POLICIES_SET:
                    of_table["policies"] = done.before
                case TableVerb.CHANGE:
                    of_table.update(
                        {name: it for name, it in (done.before or {}).items() if name in of_table}
                    )

    def tables(self, pasts: Mapping[int, Past | None]) -> dict[str, SideTable]:
        return {it.folded_name: SideTable(it, pasts[it.pk], **self._of_tables[it.pk]) for it in self._tables}


_SETTINGS: Final = (TableVerb.CHANGE, AccessVerb.POLICIES_SET, AccountVerb.PROPERTIES_SET)


def _tables(account: Account, condition: Q) -> QuerySet[Table]:
    return Table.objects.filter(condition, account=account).select_related("account").order_by("folded_name")


def _chosen(name: SideName, tables: "QuerySet[AnyTable]", account: Account) -> list[AnyTable]:
    """Return the named table, or else all; raises SideNotFound."""
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
