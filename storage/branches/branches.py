"""Branches: accounts made from another's present, a snapshot or a time, whole or in part, masked or not."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

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
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountError
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.compare import sides
from storage.compare.sides import Side, SideNotFound, SideTable
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
from storage.jobs import running
from storage.jobs.kinds import JobRequest
from storage.jobs.starters import NeededAccess
from storage.models import Account, Branch, Job, Membership, Snapshot, Table
from storage.snapshots import snapshots
from storage.snapshots.schedule import SnapshotReason
from storage.snapshots.snapshots import SnapshotNotFound
from storage.snapshots.subject import SnapshotVerb
from storage.sql import django as sql
from storage.sql import masking as masks
from storage.sql.masking import Masking
from storage.sql.relations import relation_name

_ORIGIN: Final = "origin"


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """A request to make a branch. Without a snapshot or time, it is made of the present."""

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
        """Write the request as a text, which may hold what PostgreSQL's JSON cannot."""
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
        """Read what ``dump`` wrote; raises SnapshotNotFound."""
        found = json.loads(text)
        snapshot, filters = None, found["filters"]
        if found["snapshot"] is not None:
            pk, name = found["snapshot"]
            snapshot = Snapshot.objects.filter(pk=pk).first()
            if snapshot is None:
                raise SnapshotNotFound(Reason.NO_SNAPSHOT, account=source.name, snapshot=name)
        times = {name: found[name] and datetime.fromisoformat(found[name]) for name in ("at", "expires_at")}
        rules = {table: read_rules(rules) for table, rules in found["rules"].items()}
        if filters is not None:
            filters = {name: parse(it) if it else None for name, it in filters.items()}
        return cls(**{**found, **times, "snapshot": snapshot, "filters": filters, "rules": rules})


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
        wanted = BranchRequest.load(arguments.wanted, source)
        side, chosen = _check(source, wanted)
        new = replace(
            NewAccount.like(source),
            labels={**source.labels, **wanted.labels},
            expires_at=wanted.expires_at,
            request_digest=wanted.request_digest,
        )
        account = building.create(wanted.name, new)
        is_whole = len(chosen) == len(side.tables) and (wanted.snapshot is None or wanted.snapshot.is_whole)
        branch = _fill(source, account, chosen, wanted, building, is_whole=is_whole)
        _complete(building, source, branch)


BRANCH_JOB: Final = _BranchJob()
account_building.KINDS[BRANCH_JOB.name] = BRANCH_JOB


def request(source: Account, wanted: BranchRequest) -> JobRequest[Arguments, BuildState]:
    """Return the job that makes a branch.

    The branch refuses requests until it is complete and holds no value that should be masked. Raises AccountError for a
    name that is taken by an account in the making, and for tables that do not exist.
    """
    wanted = _folded(wanted, AccountKind(source.kind))
    _check(source, wanted)
    account_building.settle(wanted.name)
    return JobRequest(BRANCH_JOB, Arguments(source.pk, source.name, wanted.name, wanted.dump()), None)


def create(source: Account, wanted: BranchRequest, *, by: Actor = SERVER) -> BuiltAccount:
    """Make a branch, and wait for the end; raises AccountExists for a name that is taken too."""
    return built_by(running.complete(request(source, wanted), by=by))


def _check(source: Account, wanted: BranchRequest) -> tuple[Side, Mapping[str, SideTable]]:
    """Return what to make a branch of, and the tables to copy."""
    side = _side(source, wanted)
    chosen = _chosen(side, wanted)
    for it in chosen.values():
        if reason := it.form.lacks.get(Ability.COPY):
            raise AccountError(reason, table=it.name)
    return side, chosen


def _fill(
    source: Account,
    account: Account,
    chosen: Mapping[str, SideTable],
    wanted: BranchRequest,
    building: Building[Arguments],
    *,
    is_whole: bool,
) -> Branch:
    secret = secrets.token_bytes(32)
    now = timezone.now()
    with sql.repeatable_read():
        copied = [_copy(name, it, account, wanted, secret) for name, it in chosen.items()]
        originals = _find_originals(chosen, [table for table, _ in copied], wanted.rules)
        if wanted.with_settings:
            Account.objects.filter(pk=account.pk).update(
                service_properties=wanted.snapshot.service_properties
                if wanted.snapshot is not None
                else Account.objects.values_list("service_properties", flat=True).get(pk=source.pk)
            )
        Membership.objects.bulk_create(
            Membership(account=account, user_id=it.user_id, role=it.role, given_by=it.given_by)
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
            actor_kind=building.run.by.kind,
            actor=sql.storable_text(building.run.by.name, 256),
        )
    building.add(sum(number for _, number in copied), tables=len(copied))
    account.refresh_from_db()
    branch.account = account
    return branch


def _complete(building: Building[Arguments], source: Account, branch: Branch) -> None:
    """Take the snapshot that a reset returns to, and release the branch unless originals were found in it."""
    account, by = branch.account, building.run.by
    origin = snapshots.take_automatic(account, _ORIGIN, SnapshotReason.BRANCH, by=by, lifetime=None)
    with invalidating_catalogs():
        branch.origin = origin
        branch.save(update_fields=("origin",))
        detail = {"branch": account.name, "snapshot": branch.snapshot_name}
        activity.record(SnapshotVerb.BRANCH_CREATE, by, account=source, detail=detail)
        building.release(account, enabled=not branch.originals)


# copied tables and entities


def _folded(wanted: BranchRequest, kind: AccountKind) -> BranchRequest:
    """Return the request with folded names of tables."""
    return replace(
        wanted,
        filters=None
        if wanted.filters is None
        else {fold_table_name(name, kind): filter_ for name, filter_ in wanted.filters.items()},
        rules={fold_table_name(name, kind): rules for name, rules in wanted.rules.items() if rules},
    )


def _side(source: Account, wanted: BranchRequest) -> Side:
    """Return what to make a branch of; tables of a time have the policies of the present."""
    if wanted.snapshot is not None:
        return sides.of_snapshot(wanted.snapshot, source)
    if wanted.at is None:
        return sides.live(source)
    since = past.kept_since(source)
    if since is None:
        raise AccountError(Reason.ACCOUNT_NOT_READ_THEN, account=source.name)
    if wanted.at < since:
        raise AccountError(Reason.ACCOUNT_READ_SINCE, account=source.name, since=f"{since:%Y-%m-%d %H:%M:%S}")
    try:
        return sides.as_of(source, Moment(to_ticks(wanted.at)), with_present_settings=True)
    except SideNotFound as error:
        raise AccountError(error.refusal) from None


def _chosen(side: Side, wanted: BranchRequest) -> Mapping[str, SideTable]:
    for name in (*(wanted.filters or ()), *wanted.rules):
        if name not in side.tables:
            raise AccountError(Reason.NO_TABLE_TO_COPY, table=name)
    if wanted.filters is None:
        return side.tables
    unused = wanted.rules.keys() - wanted.filters.keys()
    if unused:
        raise AccountError(Reason.MASKED_NOT_COPIED, table=min(unused))
    return {name: it for name, it in side.tables.items() if name in wanted.filters}


# copying


def _copy(
    name: str, source: SideTable, account: Account, wanted: BranchRequest, secret: bytes
) -> tuple[Table, int]:
    rules = wanted.rules.get(name)
    masking = None if rules is None else Masking(rules, secret)
    query = EntityQuery(filter=None if wanted.filters is None else wanted.filters[name])
    table, count = account_building.copy_table(source, account, query, masking)
    if wanted.with_policies:
        policies.copy(source.policies, table)
    return table, count


def _find_originals(
    chosen: Mapping[str, SideTable], copied: Sequence[Table], rules: TableRules
) -> list[Original]:
    """Search the branch for the values that masked properties have in the source."""
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


def find(account: Account) -> Branch | None:
    """Return what an account is a branch of; None if it is not one."""
    return Branch.objects.filter(account=account).select_related("account", "origin", "source").first()


def is_complete(branch: Branch) -> bool:
    """Return whether a branch is ready; one with original values that should be masked is, though it is frozen."""
    return branch.origin_id is not None or branch.account.enabled
