"""Branches: accounts created from another's present, snapshot or past, whole or partial, optionally masked."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

from django.db.models import QuerySet
from django.utils import timezone

from storage.access import policies
from storage.account_files import account_building
from storage.account_files.account_building import (
    Building,
    BuildJob,
    BuildState,
    BuiltAccount,
    Original,
    built_by,
)
from storage.accounts import accounts, quotas
from storage.accounts.accounts import NewAccount
from storage.accounts.quotas import QuotaReached
from storage.accounts.refusals import AccountError
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.compare import sides
from storage.compare.sides import Side, SideNotFound, SideTable
from storage.core.quotas import BRANCHES
from storage.core.relation_forms import Ability
from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.masking import TableRules, read_rules
from storage.domain.entities.moments import Moment
from storage.domain.filters.ast import Filter
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.filters.writer import write as write_filter
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.domain.values.ticks import to_ticks
from storage.history import past
from storage.jobs import jobs, running
from storage.jobs.kinds import JobRequest
from storage.jobs.starters import NeededAccess
from storage.models import Account, Branch, Job, Membership, Snapshot, Table
from storage.snapshots import snapshots
from storage.snapshots.schedule import SnapshotReason
from storage.snapshots.snapshots import SnapshotNotFound
from storage.snapshots.subject import SnapshotVerb
from storage.sql import django as sql
from storage.sql import masking as masks
from storage.sql.background import estimated_rows
from storage.sql.masking import Masking
from storage.sql.relations import relation_name

_ORIGIN: Final = "origin"


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """Request to create a branch, by default of the present state."""

    name: str
    snapshot: Snapshot | None = None
    at: datetime | None = None
    # the tables, by name, with filters of their entities; None: all tables
    filters: Mapping[str, Filter | None] | None = None
    rules: TableRules = field(default_factory=dict)  # by the names of tables
    with_policies: bool = True
    with_settings: bool = True
    expires_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    request_digest: str = ""  # digest of the API request

    def dump(self) -> str:
        """Serialize the request to text, as it may hold characters that PostgreSQL's JSON cannot store."""
        filters = self.filters
        written = {
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
            "snapshot": self.snapshot and [self.snapshot.pk, self.snapshot.name],
            "at": self.at and self.at.isoformat(),
            "filters": None
            if filters is None
            else {name: None if it is None else write_filter(it) for name, it in filters.items()},
            "rules": {
                table: {name: str(rule) for name, rule in rules.items()}
                for table, rules in self.rules.items()
            },
            "labels": dict(self.labels),
            "expires_at": self.expires_at and self.expires_at.isoformat(),
        }
        return json.dumps(written)

    @classmethod
    def load(cls, text: str, source: Account) -> Self:
        """Parse the text from ``dump``; raises SnapshotNotFound."""
        members = json.loads(text)
        snapshot, filters = None, members["filters"]
        if members["snapshot"] is not None:
            pk, name = members["snapshot"]
            snapshot = Snapshot.objects.filter(pk=pk).first()
            if snapshot is None:
                raise SnapshotNotFound(Reason.NO_SNAPSHOT, account=source.name, snapshot=name)
        times = {
            name: members[name] and datetime.fromisoformat(members[name]) for name in ("at", "expires_at")
        }
        rules = {table: read_rules(rules) for table, rules in members["rules"].items()}
        if filters is not None:
            filters = {name: parse(it) if it else None for name, it in filters.items()}
        return cls(**{**members, **times, "snapshot": snapshot, "filters": filters, "rules": rules})


_AS_THEY_ARE: Final = ("name", "with_policies", "with_settings", "request_digest")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a job that makes a branch."""

    source: int  # the id of the source account
    origin: str  # the name of the source account
    name: str
    wanted: str  # a BranchRequest as ``dump`` writes it


class _BranchJob(BuildJob[Arguments]):
    name, arguments = "branch.create", Arguments

    def needed_access(self, job: Job, arguments: Arguments) -> Sequence[NeededAccess]:
        return [NeededAccess(arguments.source, self.capability)]

    def build(self, building: Building[Arguments]) -> None:
        arguments = building.run.arguments
        source = Account.objects.filter(pk=arguments.source).first()
        if source is None:
            raise AccountError(Reason.NO_ACCOUNT, account=arguments.origin)
        branch_request = BranchRequest.load(arguments.wanted, source)
        side, chosen = _check(source, branch_request)
        new = replace(
            NewAccount.like(source),
            labels={**source.labels, **branch_request.labels},
            expires_at=branch_request.expires_at,
            request_digest=branch_request.request_digest,
        )
        account = building.create(branch_request.name, new)
        _copy_members(source, account)
        building.expect(sum(map(_estimate_rows, chosen.values())))
        is_whole = len(chosen) == len(side.tables) and (
            branch_request.snapshot is None or branch_request.snapshot.is_whole
        )
        branch = _fill(source, account, chosen, branch_request, building, is_whole=is_whole)
        _complete(building, source, branch)


BRANCH_JOB: Final = _BranchJob()
account_building.KINDS[BRANCH_JOB.name] = BRANCH_JOB


def request(
    source: Account, branch_request: BranchRequest, *, is_limited: bool = False
) -> JobRequest[Arguments, BuildState]:
    """Return a job that creates a branch; raises QuotaReached if it ``is_limited``, as for others than admins."""
    if is_limited and not accounts.exists(branch_request.name):  # otherwise that is what is wrong
        _check_quota(source)
    branch_request = _folded(branch_request, AccountKind(source.kind))
    _check(source, branch_request)
    account_building.settle(branch_request.name)
    return JobRequest(
        BRANCH_JOB, Arguments(source.pk, source.name, branch_request.name, branch_request.dump()), None
    )


def create(
    source: Account, wanted: BranchRequest, *, by: Actor = SERVER, is_limited: bool = False
) -> BuiltAccount:
    """Create a branch and wait for the result; raises AccountExists for a taken name, and QuotaReached."""
    return built_by(running.complete(request(source, wanted, is_limited=is_limited), by=by))


def _check_quota(source: Account) -> None:
    most = quotas.limit(BRANCHES)
    made = Branch.objects.filter(source=source).count()
    if made + unfinished(source).filter(account__branch=None).count() >= most:
        raise QuotaReached(Reason.TOO_MANY_BRANCHES, account=source.name, most=most)


def _check(source: Account, branch_request: BranchRequest) -> tuple[Side, Mapping[str, SideTable]]:
    """Validate a branch request; return the source side and the tables to copy."""
    side = _side(source, branch_request)
    chosen = _chosen(side, branch_request)
    for it in chosen.values():
        if reason := it.form.lacks.get(Ability.COPY):
            raise AccountError(reason, table=it.name)
    return side, chosen


def _fill(
    source: Account,
    account: Account,
    chosen: Mapping[str, SideTable],
    branch_request: BranchRequest,
    building: Building[Arguments],
    *,
    is_whole: bool,
) -> Branch:
    secret = secrets.token_bytes(32)
    now = timezone.now()
    with sql.repeatable_read():
        copied: list[tuple[Table, int]] = []
        for name, it in chosen.items():
            copied.append(_copy(name, it, account, branch_request, secret))
            building.run.show(sum(number for _, number in copied))
        originals = _find_originals(chosen, [table for table, _ in copied], branch_request.rules)
        if branch_request.with_settings:
            Account.objects.filter(pk=account.pk).update(
                service_properties=branch_request.snapshot.service_properties
                if branch_request.snapshot is not None
                else Account.objects.values_list("service_properties", flat=True).get(pk=source.pk)
            )
        branch = Branch.objects.create(
            account=account,
            source=source,
            source_name=source.name,
            snapshot_name=branch_request.snapshot.name if branch_request.snapshot is not None else "",
            at=branch_request.snapshot.taken_at
            if branch_request.snapshot is not None
            else branch_request.at or now,
            is_whole=is_whole,
            masking={
                table: {name: str(rule) for name, rule in rules.items()}
                for table, rules in branch_request.rules.items()
            },
            originals=[[it.table, it.property, it.entities] for it in originals],
            actor_kind=building.run.by.kind,
            actor=sql.storable_text(building.run.by.name, 256),
        )
    building.add(sum(number for _, number in copied), tables=len(copied))
    account.refresh_from_db()
    branch.account = account
    return branch


def _copy_members(source: Account, account: Account) -> None:
    """Give the members of the source their roles in its branch, which they see while it is made."""
    Membership.objects.bulk_create(
        Membership(account=account, user_id=it.user_id, role=it.role, given_by=it.given_by)
        for it in Membership.objects.filter(account=source)
    )


def _estimate_rows(source: SideTable) -> int:
    table = source.table
    return estimated_rows(table.pk) if isinstance(table, Table) else table.entities


def _complete(building: Building[Arguments], source: Account, branch: Branch) -> None:
    """Take the snapshot to which a reset returns, and enable the branch unless unmasked values were found."""
    account, by = branch.account, building.run.by
    origin = snapshots.take_automatic(account, _ORIGIN, SnapshotReason.BRANCH, by=by, lifetime=None)
    with invalidating_catalogs():
        branch.origin = origin
        branch.save(update_fields=("origin",))
        detail = {"branch": account.name, "snapshot": branch.snapshot_name}
        activity.record(SnapshotVerb.BRANCH_CREATE, by, account=source, detail=detail)
        building.release(account, enabled=not branch.originals)


# copied tables and entities


def _folded(branch_request: BranchRequest, kind: AccountKind) -> BranchRequest:
    """Return the request with folded table names."""
    return replace(
        branch_request,
        filters=None
        if branch_request.filters is None
        else {fold_table_name(name, kind): filter_ for name, filter_ in branch_request.filters.items()},
        rules={fold_table_name(name, kind): rules for name, rules in branch_request.rules.items() if rules},
    )


def _side(source: Account, branch_request: BranchRequest) -> Side:
    """Return the source side of a branch; for a past time, tables have their present policies."""
    if branch_request.snapshot is not None:
        return sides.of_snapshot(branch_request.snapshot, source)
    if branch_request.at is None:
        return sides.live(source)
    since = past.kept_since(source)
    if since is None:
        raise AccountError(Reason.ACCOUNT_NOT_READ_THEN, account=source.name)
    if branch_request.at < since:
        raise AccountError(Reason.ACCOUNT_READ_SINCE, account=source.name, since=f"{since:%Y-%m-%d %H:%M:%S}")
    try:
        return sides.as_of(source, Moment(to_ticks(branch_request.at)), with_present_settings=True)
    except SideNotFound as error:
        raise AccountError(error.refusal) from None


def _chosen(side: Side, branch_request: BranchRequest) -> Mapping[str, SideTable]:
    for name in (*(branch_request.filters or ()), *branch_request.rules):
        if name not in side.tables:
            raise AccountError(Reason.NO_TABLE_TO_COPY, table=name)
    if branch_request.filters is None:
        return side.tables
    unused = branch_request.rules.keys() - branch_request.filters.keys()
    if unused:
        raise AccountError(Reason.MASKED_NOT_COPIED, table=min(unused))
    return {name: it for name, it in side.tables.items() if name in branch_request.filters}


# copying


def _copy(
    name: str, source: SideTable, account: Account, branch_request: BranchRequest, secret: bytes
) -> tuple[Table, int]:
    rules = branch_request.rules.get(name)
    masking = None if rules is None else Masking(rules, secret)
    query = EntityQuery(filter=None if branch_request.filters is None else branch_request.filters[name])
    table, count = account_building.copy_table(source, account, query, masking)
    if branch_request.with_policies:
        policies.copy(source.policies, table)
    return table, count


def _find_originals(
    chosen: Mapping[str, SideTable], copied: Sequence[Table], rules: TableRules
) -> list[Original]:
    """Search the branch for original values of properties that should be masked."""
    if not rules:
        return []
    sql.execute(masks.ORIGINALS)
    for name, masked in rules.items():
        chosen[name].run(masks.collect_originals(chosen[name].relation, masked))
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


def unfinished(source: Account) -> QuerySet[Job]:
    """Return the unfinished jobs that make branches of an account."""
    return jobs.unfinished(BRANCH_JOB).filter(arguments__source=source.pk).select_related("account")


def find(account: Account) -> Branch | None:
    """Return the branch that an account is; None if it is not a branch."""
    return Branch.objects.filter(account=account).select_related("account", "origin", "source").first()


def is_complete(branch: Branch) -> bool:
    """Return whether a branch is ready; a branch frozen because of unmasked values counts as ready."""
    return branch.origin_id is not None or branch.account.enabled
