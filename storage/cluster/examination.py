"""Findings of ``doctor`` about a cluster, its nodes and distributed tables."""

from collections.abc import Iterator

from storage.cluster import ddl, distribution_jobs, statements
from storage.cluster.nodes import unanswering
from storage.cluster.subject import FORM
from storage.domain.values.numbers import counted
from storage.health.findings import Finding, Severity, error, fine, warning
from storage.jobs import jobs
from storage.models import Table
from storage.sql.relations import source_name


def examine() -> Iterator[Finding]:
    every = Table.objects.filter(distributed=True).select_related("account").order_by("pk")
    distributed, deleted = every.filter(deleted_at=None), every.exclude(deleted_at=None)
    if not ddl.is_coordinator():
        yield fine("The database is not part of a Citus cluster; all tables are in it.")
        for table in distributed:
            yield warning(
                f"{_name(table)} has the form of a distributed table. It works; undistribute ends the form."
            )
        return
    nodes = statements.nodes()
    yield fine(
        f"Coordinator of Citus {statements.citus_version()} with {len(nodes)} nodes for rows:"
        f" {', '.join(nodes) or 'none'}. "
        f"Distributed: {counted(len(distributed), 'table')}; all others are here."
        + (f" Deleted and not dropped yet: {counted(len(deleted), 'table')}." if deleted else "")
    )
    if not nodes:
        yield error("No node can take rows. Add workers with citus_add_node before distributing.")
    # those that do not answer first: what asks all nodes would wait for them
    for unreachable in [str(it) for it in unanswering()] or statements.unreachable_nodes():
        yield error(
            f"{unreachable} cannot be reached. Requests for its partitions answer 503, and tables cannot be"
            " distributed until it is back."
        )
    missing = ddl.missing_helpers()
    if missing:
        yield Finding(
            Severity.WARNING if not distributed else Severity.ERROR,
            f"The nodes lack functions that statements call: {', '.join(missing)}. Distributing a table adds them.",
        )
    for name in statements.distributed_by_hand():
        yield error(
            f"The relation {name} was distributed by hand, but the server takes its table for a local one, whose"
            f" history is then not atomic. Run SELECT undistribute_table('{name}'), then manage.py distribute."
        )
    for table in every:
        yield from _table(table)
    for job in distribution_jobs.failed().select_related("table__account"):
        if job.table is not None:
            yield warning(f"Moving {_name(job.table)} has failed: {jobs.error_of(job)}")


def _table(table: Table) -> Iterator[Finding]:
    is_deleted = table.deleted_at is not None
    relation = source_name(FORM.relation(table.pk), is_deleted=is_deleted)
    if not ddl.is_spread(relation):
        yield warning(
            f"{_name(table)} has the form of a distributed table, but its rows are here. It works;"
            " distribute or undistribute it."
        )
        return
    if not is_deleted and not ddl.is_delegated(relation):
        yield error(
            f"The function of {_name(table)} is not delegated to the nodes, so that writes with history are not"
            " atomic. Delete and restore the table, or undistribute and distribute it."
        )
    left = 0 if is_deleted else ddl.local_bytes(relation)
    if left:
        yield warning(
            f"Former rows of {_name(table)} still take {left / 2**20:,.1f} MiB here; a job of the server frees them."
        )


def _name(table: Table) -> str:
    return f"{table.account.name}/{table.name}"
