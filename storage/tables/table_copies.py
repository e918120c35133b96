"""Copies of a table under another name in its account: entities with their Timestamps, policies and notes."""

from dataclasses import dataclass
from typing import Final

from django.db import IntegrityError, transaction

from storage.accounts import accounts
from storage.activity import activity
from storage.core.relation_forms import Ability
from storage.domain.access.roles import Capability
from storage.domain.errors import TableAlreadyExists
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Refused
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_new_table_name
from storage.jobs.kinds import JobKind, JobRequest, NoState, Run, Step
from storage.models import Activity, Job, StoredAccessPolicy, Table
from storage.sql import background, copying
from storage.sql import django as sql
from storage.sql.relations import relation_name
from storage.tables import tables
from storage.tables.subject import TableVerb


class CopyRefused(Refused):
    """The table has a form that cannot be copied."""


@dataclass(frozen=True, slots=True)
class Arguments:
    origin: str
    name: str


class _CopyJob(JobKind[Arguments, NoState]):
    """Job that copies a table in one transaction, so that no request finds a part of it."""

    name, arguments, state = "table.copy", Arguments, NoState
    capability = Capability.MANAGE_TABLES

    def begin(self, run: Run[Arguments]) -> Step[NoState]:
        _check(run.table, run.arguments.name)
        return Step(NoState(), total=background.estimated_rows(run.table.pk))

    def step(self, run: Run[Arguments], state: NoState) -> Step[NoState]:
        sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")  # its statements read the same moment
        source, account = run.table, accounts.writable(run.account)
        new_table = Table(
            name=run.arguments.name,
            description=source.description,
            tags=source.tags,
            throughput=source.throughput,
        )
        relation = relation_name(source.pk)

        def fill(target: str) -> int:
            return sql.walk(copying.fill(relation, target, EntityQuery()))

        try:
            with transaction.atomic():
                table, count = tables.create_filled(account, new_table, fill)
        except IntegrityError:
            raise TableAlreadyExists from None
        policies = list(StoredAccessPolicy.objects.filter(table=source))
        for policy in policies:
            policy.pk, policy.table = None, table
        StoredAccessPolicy.objects.bulk_create(policies)
        done = activity.record(
            TableVerb.COPY,
            run.by,
            account=account,
            table=table,
            detail={"from": source.name, "rows": count, "last": str(_summarize(table)[1])},
        )
        Job.objects.filter(pk=run.job.pk).update(table=table, table_name=table.name)
        return Step(
            state, done=count, total=count, counts={"inserted": count}, is_finished=True, activity=done
        )


COPY_JOB: Final = _CopyJob()


def request(table: Table, name: str) -> JobRequest[Arguments, NoState]:
    """Return a job that copies a table; raises StorageError for an invalid or taken name, and CopyRefused."""
    accounts.check_writable(table.account)
    _check(table, name)
    return JobRequest(COPY_JOB, Arguments(table.name, name), table.account, table)


def _check(table: Table, name: str) -> None:
    if reason := table.form.lacks.get(Ability.COPY):
        raise CopyRefused(reason, table=table.name)
    folded = fold_new_table_name(name, AccountKind(table.account.kind))
    if tables.find(table.account, folded) is not None:
        raise TableAlreadyExists


def has_changed(table: Table, done: Activity) -> bool:
    """Return whether entities of a copy were written since it was made."""
    rows, last = _summarize(table)
    return (rows, str(last)) != (done.detail.get("rows"), done.detail.get("last"))


def _summarize(table: Table) -> tuple[int, int]:
    return sql.run(copying.summarize(relation_name(table.pk)))
