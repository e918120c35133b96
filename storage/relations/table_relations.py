"""Make, hide, restore and drop the relation of a table, a local or a distributed one."""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from django.db import InternalError, OperationalError, transaction

from storage.domain.errors import NotImplemented, ServerBusy
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.models import Table
from storage.sql import distributed_relations, nodes, relations
from storage.sql import django as sql
from storage.sql.attempts import attempting_each
from storage.sql.failures import NodeLost
from storage.sql.relations import source_name

logger = logging.getLogger(__name__)


@cache
def can_distribute() -> bool:
    """Return whether the database is the coordinator of a cluster, as this process found it first."""
    return distributed_relations.is_coordinator()


def is_spread(table: Table) -> bool:
    """Return whether the rows of a distributed table are on the nodes; else it only has the form for it."""
    if not table.distributed or not distributed_relations.is_coordinator():
        return False
    is_deleted = table.deleted_at is not None
    return distributed_relations.is_spread(source_name(table.pk, is_deleted=is_deleted, is_distributed=True))


def refuse_distributed(table: Table) -> None:
    """Refuse what takes images of entities, which cannot be right over several nodes; raises NotImplemented."""
    if table.distributed:
        raise NotImplemented(Reason.DISTRIBUTED_HAS_NO_IMAGES.of(table=table.name))


def create(table: Table, kind: AccountKind) -> None:
    """Make the relation of a new table; raises ServerBusy if it is distributed and a node cannot be reached."""
    if not table.distributed:
        sql.execute(relations.create(table.pk, table.account_id, kind))
        return
    with _all_nodes():
        spread_helpers()
        run_all(distributed_relations.create(table.pk, kind))
        run_all(distributed_relations.spread(table.pk))


def spread(table: Table) -> None:
    """Spread the rows of a table in its distributed form over the nodes."""
    with _all_nodes():
        run_all(distributed_relations.spread(table.pk))


def gather(table: Table) -> None:
    """Bring the rows of a distributed table, which keeps its form, to the coordinator."""
    with _all_nodes():
        run_all(distributed_relations.gather(table.pk))


def soft_delete(table: Table) -> None:
    """Hide the relation from all statements; ``table`` may be marked as deleted already."""
    if not table.distributed:
        sql.execute(relations.soft_delete(table.pk))
        return
    relation = relations.relation_of(table)
    spread = distributed_relations.is_coordinator() and distributed_relations.is_spread(relation)
    with _all_nodes():
        run_all(distributed_relations.soft_delete(table.pk, is_spread=spread))


def restore(table: Table, kind: AccountKind) -> None:
    """Revert ``soft_delete``; the function of a distributed relation is distributed again with it."""
    if not table.distributed:
        sql.execute(relations.restore(table.pk, table.account_id, kind))
        return
    deleted = source_name(table.pk, is_deleted=True, is_distributed=True)
    spread = distributed_relations.is_coordinator() and distributed_relations.is_spread(deleted)
    with _all_nodes():
        run_all(distributed_relations.restore(table.pk, kind, is_spread=spread))


def drop(table: Table) -> None:
    """Remove a hidden relation."""
    if not table.distributed:
        sql.execute(relations.drop(table.pk))
        return
    with _all_nodes():
        run_all(distributed_relations.drop(table.pk))


def incomplete() -> list[Table]:
    """Return the tables without their function: a server of an older version has created or restored them."""
    found = relations.find_without_function()
    return list(Table.objects.filter(pk__in=found).select_related("account").order_by("pk")) if found else []


def complete_all() -> None:
    """Give all tables their function."""
    with attempting_each("Not every table could be completed") as attempt:
        for table_id in relations.find_without_function():
            with attempt():
                complete(table_id)


def complete(table_id: int) -> bool:
    """Give a table its function; return whether it was missing."""
    if not relations.find_without_function(table_id):
        return False
    with transaction.atomic():
        # several processes may find it at once; it may be deleted meanwhile
        found = Table.objects.select_for_update(of=("self",)).select_related("account")
        table = found.filter(pk=table_id, deleted_at=None, distributed=False).first()
        if table is not None and relations.find_without_function(table_id):
            kind = AccountKind(table.account.kind)
            sql.execute(relations.create_function(table.pk, table.account_id, kind))
            logger.warning(
                "An older version of Tablero has created or restored the table %s of the account %s without the"
                " function for changes, which it has now. Stop servers of that version.",
                table.name,
                table.account.name,
            )
    return True


def renew_function(table: Table) -> None:
    """Replace a distributed table's function of another version of this server."""
    relation, kind = relations.relation_of(table), AccountKind(table.account.kind)
    if not distributed_relations.has_other_function(relation, kind):
        return
    spread = is_spread(table)

    @sql.repeatable_on_nodes
    def renew() -> None:
        if Table.objects.select_for_update().filter(pk=table.pk, deleted_at=None, distributed=True).exists():
            with _all_nodes():
                spread_helpers()
                run_all(distributed_relations.renew_function(table.pk, kind, is_spread=spread))

    renew()


@contextmanager
def _all_nodes() -> Iterator[None]:
    """Run commands on all nodes; raises ServerBusy if one cannot be reached or others are using them.

    It is NodeLost if the end of a node was noticed only now: ``sql.repeatable_on_nodes`` then repeats the transaction.
    """
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
    """Raise ServerBusy if a node does not answer: what waits for it could not even be cancelled."""
    if not distributed_relations.is_coordinator():
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
    """Give all nodes the functions that statements call, if Citus came after they were made."""
    for function in distributed_relations.missing_helpers():
        sql.execute(distributed_relations.spread_helper(function))


def run_all(commands: Iterable[str]) -> None:
    """Run commands one by one: Citus refuses several in one text."""
    for command in commands:
        sql.execute(command)


def describe(relation: str) -> str:
    """Return the name of the table that a relation belongs to, for an operator; of others, their own name."""
    match = re.fullmatch("(?:deleted_)?entity_([0-9]+)(?:_long)?", relation)
    table = Table.objects.select_related("account").filter(pk=int(match[1])).first() if match else None
    return f"the relation {relation}" if table is None else f"the table {table.account.name}/{table.name}"
