"""Have a table distributed or gathered by a background job: the rows of a large one take longer than a request may."""

from typing import Final

from django.db import DatabaseError, connection

from storage.domain.access.actor import Actor, dump_actor, load_actor
from storage.domain.errors import ResourceNotFound, StorageError
from storage.domain.refusals import Reason
from storage.models import DistributionRequest, Table
from storage.operations.accounts import accounts
from storage.operations.relations import table_relations
from storage.operations.tables import distribution
from storage.operations.tables.distribution import DistributionError
from storage.sql.background import try_lock

_MOVING: Final = 0x7461626E  # class of advisory locks on tables


def ask(table: Table, *, distributed: bool, by: Actor) -> None:
    """Have a table distributed, or brought back; run_pending does it. One that failed is tried again.

    Raises DistributionError if there is no cluster, nothing to do, or a request that waits.
    """
    accounts.check_writable(table.account)
    if distributed and not table_relations.can_distribute():
        raise DistributionError(Reason.NO_COORDINATOR)
    if _is_done(table, distributed=distributed):
        reason = Reason.DISTRIBUTED_ALREADY if distributed else Reason.NOT_DISTRIBUTED
        raise DistributionError(reason, table=table.name)
    wanted = {"distributed": distributed, "actor": dump_actor(by), "error": ""}
    found, is_new = DistributionRequest.objects.get_or_create(table=table, defaults=wanted)
    if is_new:
        return
    if not found.error:
        raise DistributionError(Reason.ROWS_ARE_MOVED, table=table.name)
    found.delete()
    DistributionRequest.objects.create(table=table, **wanted)


def find(table: Table) -> DistributionRequest | None:
    """Return the requests that are not done: they wait, run, or have failed."""
    return DistributionRequest.objects.filter(table=table).first()


def dismiss(table: Table) -> None:
    """Forget a request that failed."""
    DistributionRequest.objects.filter(table=table).exclude(error="").delete()


def run_pending() -> None:
    """Do what was asked for; another process takes over what one that died has left."""
    pending = DistributionRequest.objects.filter(error="", table__deleted_at=None)
    for pk in pending.order_by("asked_at").values_list("pk", flat=True):
        with try_lock(_MOVING, pk) as is_alone:
            # another process may have done it before the lock was free
            request = pending.select_related("table__account").filter(pk=pk).first()
            if is_alone and request is not None:
                _run(request)


def _run(request: DistributionRequest) -> None:
    table, own = request.table, DistributionRequest.objects.filter(pk=request.pk, asked_at=request.asked_at)
    by = load_actor(request.actor)
    try:
        if not _is_done(table, distributed=request.distributed):
            (distribution.distribute if request.distributed else distribution.undistribute)(table, by=by)
    except ResourceNotFound:
        pass  # it was deleted meanwhile; should it be restored, this is tried again
    except (DistributionError, StorageError) as error:
        own.update(error=error.refusal.dump())
    except DatabaseError as error:
        if not connection.is_usable():
            raise
        failed = Reason.DISTRIBUTION_FAILED if request.distributed else Reason.GATHERING_FAILED
        own.update(error=failed.of(table=table.name, why=str(error).strip()).dump())
    else:
        own.delete()


def _is_done(table: Table, *, distributed: bool) -> bool:
    return table_relations.is_spread(table) if distributed else not table.distributed
