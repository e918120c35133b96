"""Branches: accounts made from another's present, a snapshot or a time, whole or in part, masked or not."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db.models import Q
from django.utils import timezone

from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.masking import TableRules
from storage.domain.entities.moments import Moment
from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Reason
from storage.domain.service.activity import Verb
from storage.domain.service.snapshots import SnapshotReason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_ticks
from storage.models import Account, Branch, Membership, Snapshot, SnapshotTable, StoredAccessPolicy, Table
from storage.operations.access import policies
from storage.operations.accounts.accounts import NewAccount
from storage.operations.accounts.refusals import AccountError
from storage.operations.activity import activity
from storage.operations.activity.catalog_change import invalidating_catalogs
from storage.operations.activity.long_operations import Operation
from storage.operations.changes import past
from storage.operations.counting import totals
from storage.operations.relations import snapshot_copies
from storage.operations.snapshots import account_building, snapshots
from storage.operations.tables import tables
from storage.sql import copying
from storage.sql import django as sql
from storage.sql import masking as masks
from storage.sql.distribution import capabilities_of
from storage.sql.masking import Masking
from storage.sql.past import Past, as_of
from storage.sql.relations import relation_name
from storage.sql.statement import Statement

_ORIGIN: Final = "origin"


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """What to make a branch of. Without a snapshot or time, it is made of the present.

    ``filters``: which tables, by name, and which of their entities; None: all. ``rules`` are by the names of tables.
    """

    name: str
    snapshot: Snapshot | None = None
    at: datetime | None = None
    filters: Mapping[str, Filter | None] | None = None
    rules: TableRules = field(default_factory=dict)
    with_policies: bool = True
    with_settings: bool = True
    expires_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    request_digest: str = ""  # of the API request


@dataclass(frozen=True, slots=True)
class Original:
    """A property of a branch in which original values were found that should be masked."""

    table: str
    property: str
    entities: int


@dataclass(frozen=True, slots=True)
class Branched:
    """A new branch. With ``originals``, it stays frozen."""

    branch: Branch
    tables: int
    entities: int
    originals: Sequence[Original]


@dataclass(frozen=True, slots=True)
class _Source:
    """A table to copy: ``past`` is None for the present, ``relation`` is what statements name."""

    table: Table | SnapshotTable
    relation: str
    past: Past | None
    policies: Sequence[Mapping[str, object]]

    def read(self, statement: Statement[int]) -> int:
        return sql.run(statement if self.past is None else as_of(statement, self.past))


def create(source: Account, wanted: BranchRequest, *, by: Actor = SERVER) -> Branched:
    """Make a branch, which refuses requests until it is complete and holds no value that should be masked.

    Raises AccountError for a name that is taken and for tables that do not exist. The source of a process that dies
    does not change, and the branch is removed later, or by the next request for it.
    """
    wanted = _folded(wanted, AccountKind(source.kind))
    found = _sources(source, wanted)
    sources = _selected(found, wanted)
    is_whole = len(sources) == len(found) and (wanted.snapshot is None or wanted.snapshot.is_whole)
    for it in sources:
        if isinstance(it.table, Table) and not capabilities_of(it.table).has_past:
            raise AccountError(Reason.DISTRIBUTED_NOT_COPIED, table=it.table.name)
    new = replace(
        NewAccount.like(source),
        labels={**source.labels, **wanted.labels},
        expires_at=wanted.expires_at,
        request_digest=wanted.request_digest,
    )
    with account_building.building(Verb.BRANCH_CREATE, wanted.name, new, by=by) as operation:
        made = _fill(source, operation.account, sources, wanted, by, is_whole=is_whole)
        _complete(operation, source, made.branch)
        return made


def _fill(
    source: Account,
    account: Account,
    sources: Sequence[_Source],
    wanted: BranchRequest,
    by: Actor,
    *,
    is_whole: bool,
) -> Branched:
    secret = secrets.token_bytes(32)
    now = timezone.now()
    with sql.repeatable_read():
        copied = [_copy(it, account, wanted, secret) for it in sources]
        originals = _find_originals(account, sources, [table for table, _ in copied], wanted.rules)
        if wanted.with_settings:
            Account.objects.filter(pk=account.pk).update(
                service_properties=wanted.snapshot.service_properties
                if wanted.snapshot is not None
                else Account.objects.values_list("service_properties", flat=True).get(pk=source.pk)
            )
        Membership.objects.bulk_create(
            Membership(account=account, user_id=it.user_id, role=it.role)
            for it in Membership.objects.filter(account=source)
        )
        branch = Branch.objects.create(
            account=account,
            source=source,
            source_name=source.name,
            snapshot_name=wanted.snapshot.name if wanted.snapshot is not None else "",
            at=wanted.snapshot.taken_at if wanted.snapshot is not None else wanted.at or now,
            is_whole=is_whole,
            masking={
                table: {name: str(rule) for name, rule in rules.items()}
                for table, rules in wanted.rules.items()
            },
            originals=[[it.table, it.property, it.entities] for it in originals],
            actor_kind=by.kind,
            actor=sql.storable_text(by.name, 256),
        )
    account.refresh_from_db()
    branch.account = account
    return Branched(branch, len(copied), sum(number for _, number in copied), originals)


def _complete(operation: Operation, source: Account, branch: Branch) -> None:
    """Take the snapshot that a reset returns to, and release the branch unless originals were found in it."""
    by = operation.by
    origin = snapshots.take_automatic(operation.account, _ORIGIN, SnapshotReason.BRANCH, by=by, lifetime=None)
    with invalidating_catalogs():
        branch.origin = origin
        branch.save(update_fields=("origin",))
        detail = {"branch": branch.account.name, "snapshot": branch.snapshot_name}
        activity.record(Verb.BRANCH_CREATE, by, account=source, detail=detail)
        account_building.release(operation, enabled=not branch.originals)


# what is copied


def _sources(source: Account, wanted: BranchRequest) -> list[_Source]:
    if wanted.snapshot is not None:
        return [_from_snapshot(it) for it in wanted.snapshot.tables.order_by("folded_name")]
    if wanted.at is not None:
        return _at(source, wanted.at)
    return [
        _from_table(it, None) for it in Table.objects.own().filter(account=source).order_by("folded_name")
    ]


def _from_snapshot(found: SnapshotTable) -> _Source:
    if found.is_copied:
        past = snapshot_copies.past_of(found)
        return _Source(found, past.source, None, found.policies)
    return _Source(found, relation_name(found.table_id), snapshot_copies.past_of(found), found.policies)


def _from_table(table: Table, past: Past | None) -> _Source:
    stored = [
        policies.identifier(it) for it in StoredAccessPolicy.objects.filter(table=table).order_by("place")
    ]
    return _Source(table, relation_name(table.pk), past, policies.write(stored))


def _folded(wanted: BranchRequest, kind: AccountKind) -> BranchRequest:
    """Return the request with folded names of tables."""
    return replace(
        wanted,
        filters=None
        if wanted.filters is None
        else {fold_table_name(name, kind): filter_ for name, filter_ in wanted.filters.items()},
        rules={fold_table_name(name, kind): rules for name, rules in wanted.rules.items() if rules},
    )


def _at(source: Account, moment: datetime) -> list[_Source]:
    """Return the tables that there were at a time, with the policies that they have now."""
    since = past.kept_since(source.pk)
    if since is None:
        raise AccountError(Reason.ACCOUNT_NOT_READ_THEN, account=source.name)
    if moment < since:
        raise AccountError(Reason.ACCOUNT_READ_SINCE, account=source.name, since=f"{since:%Y-%m-%d %H:%M:%S}")
    at = Moment(to_ticks(moment))
    there = Table.objects.filter(Q(deleted_at=None) | Q(deleted_at__gt=moment), created_at__lte=moment)
    own = there.filter(account=source).exclude(folded_name__startswith="$").order_by("folded_name")
    try:
        return [_from_table(table, past.find(table, at)) for table in own]
    except StorageError as error:
        raise AccountError(error.refusal) from None


def _selected(sources: list[_Source], wanted: BranchRequest) -> list[_Source]:
    named = {it.table.folded_name for it in sources}
    for name in (*(wanted.filters or ()), *wanted.rules):
        if name not in named:
            raise AccountError(Reason.NO_TABLE_TO_COPY, table=name)
    if wanted.filters is None:
        return sources
    unused = wanted.rules.keys() - wanted.filters.keys()
    if unused:
        raise AccountError(Reason.MASKED_NOT_COPIED, table=min(unused))
    return [it for it in sources if it.table.folded_name in wanted.filters]


# copying


def _copy(source: _Source, account: Account, wanted: BranchRequest, secret: bytes) -> tuple[Table, int]:
    name = source.table.folded_name
    rules = wanted.rules.get(name)
    masking = None if rules is None else Masking(rules, secret)
    query = EntityQuery(filter=None if wanted.filters is None else wanted.filters[name])

    table, count = tables.create_filled(
        account,
        source.table,
        lambda target: sql.walk(copying.fill(source.relation, target, query, masking), source.read),
    )
    if wanted.with_policies:
        policies.copy(source.policies, table)
    return table, count


def _find_originals(
    account: Account, sources: Sequence[_Source], copied: Sequence[Table], rules: TableRules
) -> list[Original]:
    """Search the branch for the values that masked properties have in the source."""
    if not rules:
        return []
    sql.execute(masks.ORIGINALS)
    for source in sources:
        if source.table.folded_name in rules:
            source.read(masks.collect_originals(source.relation, rules[source.table.folded_name]))
    sql.execute(masks.ANALYZE)
    return [
        Original(table.name, name, number)
        for table in copied
        for name, number in sql.run(
            masks.find_originals(relation_name(table.pk), rules.get(table.folded_name, {}))
        )
    ]


# reading


def listed(account: Account) -> list[Branch]:
    """Return the branches that were made from an account, latest first."""
    return list(
        Branch.objects.filter(source=account).select_related("account", "origin").order_by("-created_at")
    )


def find(account: Account) -> Branch | None:
    """Return what an account is a branch of; None if it is not one."""
    return Branch.objects.filter(account=account).select_related("account", "origin", "source").first()


def is_complete(branch: Branch) -> bool:
    """Return whether a branch is ready; one with original values that should be masked is, though it is frozen."""
    return branch.origin_id is not None or branch.account.enabled


def describe(branch: Branch) -> Branched:
    """Return a branch as ``create`` does, with estimates of what it has now."""
    found = totals.contents([branch.account_id]).get(branch.account_id)
    originals = [Original(*it) for it in branch.originals]
    return Branched(branch, found.tables if found else 0, found.entities if found else 0, originals)
