"""Lifecycle of distributed relations on all nodes: create, distribute, gather, soft-delete, restore and drop."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Final

from django.db import InternalError, OperationalError
from django.db.models import F

from storage.cluster import ddl, nodes
from storage.cluster.subject import FORM
from storage.domain.errors import ServerBusy
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.models import Table
from storage.sql import django as sql
from storage.sql import moments
from storage.sql.failures import NodeLost
from storage.sql.relations import deleted_name, relation_of, source_name

logger = logging.getLogger(__name__)

_LONGEST_CALL: Final = timedelta(minutes=1)


@cache
def can_distribute() -> bool:
    """Return whether the database is a Citus coordinator, as determined once per process."""
    return ddl.is_coordinator()


def is_spread(table: Table) -> bool:
    """Return whether the rows of a distributed table are on the nodes, not only its form distributed."""
    if not table.distributed or not ddl.is_coordinator():
        return False
    is_deleted = table.deleted_at is not None
    return ddl.is_spread(source_name(FORM.relation(table.pk), is_deleted=is_deleted))


def create(table: Table, kind: AccountKind) -> None:
    """Create the relation of a new table; raises ServerBusy if a node cannot be reached."""
    with _all_nodes():
        spread_helpers()
        run_all(ddl.create(table.pk, kind))
        run_all(ddl.spread(table.pk))
    Table.objects.filter(pk=table.pk).update(distributed_since=F("created_at"))


def spread(table: Table) -> None:
    """Distribute the rows of a table that has the distributed form."""
    with _all_nodes():
        run_all(ddl.spread(table.pk))


def gather(table: Table) -> None:
    """Move the rows of a distributed table to the coordinator, keeping its form."""
    with _all_nodes():
        run_all(ddl.gather(table.pk))


def soft_delete(table: Table) -> None:
    """Soft-delete the relation by renaming it; ``table`` may be marked as deleted already."""
    spread = ddl.is_coordinator() and ddl.is_spread(FORM.relation(table.pk))
    with _all_nodes():
        run_all(ddl.soft_delete(table.pk, is_spread=spread))


def restore(table: Table, kind: AccountKind) -> None:
    """Revert ``soft_delete``, and distribute the relation's function again if the relation is distributed."""
    spread = ddl.is_coordinator() and ddl.is_spread(deleted_name(FORM.relation(table.pk)))
    with _all_nodes():
        run_all(ddl.restore(table.pk, kind, is_spread=spread))


def drop(table: Table) -> None:
    """Drop a soft-deleted relation."""
    with _all_nodes():
        run_all(ddl.drop(table.pk))


def renew_function(table: Table) -> None:
    """Replace the function of a distributed table if it comes from another version."""
    relation, kind = relation_of(table), AccountKind(table.account.kind)
    if not ddl.has_other_function(relation, kind):
        return
    spread = is_spread(table)

    @sql.repeatable_on_nodes
    def renew() -> None:
        if Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None, distributed=True).exists():
            with _all_nodes():
                spread_helpers()
                run_all(ddl.renew_function(table.pk, kind, is_spread=spread))
            # when all calls of the function of a version that took other times have ended
            former = Table.objects.filter(pk=table.pk, distributed_since=None)
            former.update(distributed_since=moments.present_time() + _LONGEST_CALL)

    renew()


@contextmanager
def _all_nodes() -> Iterator[None]:
    """Run commands on all nodes; raises ServerBusy if one is unreachable or locked."""
    check_nodes()
    try:
        with nodes.interrupting_if_unanswered():
            yield
    except (OperationalError, InternalError) as error:
        if sql.is_lost(error):  # the coordinator, or a node that this thread has waited for
            raise
        if sql.is_lock_timeout(error):
            logger.warning(
                "A lock on the nodes of the cluster was waited for in vain: %s", _first_line(error)
            )
            raise ServerBusy(Reason.NODES_ARE_BUSY.of()) from None
        if sql.is_node_lost(error):
            raise NodeLost(Reason.NODE_IS_DOWN.of()) from None
        if isinstance(error, InternalError) and not sql.is_unavailable(error):
            raise
        logger.warning("A node of the cluster does not answer: %s", _first_line(error))
        raise ServerBusy(Reason.NODE_IS_DOWN.of()) from None


def check_nodes() -> None:
    """Raise ServerBusy if a node does not respond, because a statement that waits for it cannot be cancelled."""
    if not ddl.is_coordinator():
        return
    try:
        silent = nodes.unanswering()
    except nodes.CoordinatorSilent as error:
        logger.warning("It is not known whether the nodes of the cluster answer: %s", _first_line(error))
        return
    for node in silent:
        logger.warning("The node %s of the cluster does not answer.", node)
        raise ServerBusy(Reason.NODE_IS_DOWN.of())


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def spread_helpers() -> None:
    """Create the helper functions on all nodes, if Citus was installed after them."""
    for function in ddl.missing_helpers():
        sql.execute(ddl.spread_helper(function))


def run_all(commands: Iterable[str]) -> None:
    """Run commands one by one, as Citus refuses several in one query string."""
    for command in commands:
        sql.execute(command)
