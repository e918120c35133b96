"""Rehearsals of failures: carries out the fault that was chosen for a request, and records the exchange.

A fault comes before the operation, after its commit, or in the delivery of its answer, so that a change set is never
torn. An operation that the service refuses is answered as without a rehearsal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from storage.core.rehearsals import HEADER, WITHHELD, Delivery, Fault, Rehearser, Treatment
from storage.domain.errors import StorageError
from storage.domain.requests.observed import Rehearsed
from storage.protocol.authorization import Authorized
from storage.protocol.call import Answer, Call
from storage.protocol.delivery import deliver_as
from storage.protocol.http_exchange import Deliver
from storage.protocol.http_request import Headers
from storage.protocol.progress import Progress
from storage.protocol.rehearsed_exchange import (
    RehearsedRequest,
    describe_exchange,
    read_facts,
    read_refused_facts,
    read_request,
)
from storage.runtime.catalog import KnownAccount
from storage.runtime.rehearsed_service import RehearsedService
from storage.runtime.service import Service

logger = logging.getLogger(__name__)

ASKED: Final = HEADER.encode()
DONE: Final = b"x-tablero-rehearsed"

Perform = Callable[[Call], Awaitable[Answer]]
# authorizes the request again, by a clock that is so many seconds ahead
Authorize = Callable[[float], Awaitable[Authorized]]


class Response(Protocol):
    """Response that is about to be sent."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def body(self) -> bytes: ...


def may_count(account: KnownAccount) -> bool:
    """Return whether requests can be counted, which needs a database that this server may write."""
    return not account.standby and not account.outdated


async def perform(
    progress: Progress, rehearser: Rehearser, call: Call, run: Perform, authorize: Authorize
) -> Answer:
    """Execute the operation of an authorized request under a rehearsal; ``run`` executes it without."""
    read = read_request(call, progress)
    asked = call.request.headers.get(ASKED)
    chosen = await rehearser.begin(read_facts(call, read, asked), call.service.run)
    rehearsed = progress.rehearsed = RehearsedRequest(chosen, read)
    fault = chosen.fault or Fault()
    if fault.delay:
        rehearsed.strike(Treatment.DELAY)
        await asyncio.sleep(fault.delay)
    if fault.delay or fault.skew:
        try:
            authorized = await authorize(fault.skew)
        except StorageError:
            rehearsed.strike(Treatment.SKEW)
            raise
        call = call._replace(
            account=authorized.account, grant=authorized.grant, credential=authorized.credential
        )
    if fault.before is not None:
        rehearsed.strike(Treatment.FAILURE)
        raise fault.before
    if not fault.is_run:
        rehearsed.strike(Treatment.FAILURE)
        return Answer(500, [])  # is not delivered
    if fault.lag:
        rehearsed.strike(Treatment.LAG)
    return await _run(rehearsed, fault, call, run)


async def _run(rehearsed: RehearsedRequest, fault: Fault, call: Call, run: Perform) -> Answer:
    """Run the operation, and answer with its result or with a fault after it."""
    session = call.terms.session if call.terms is not None else None
    rehearsed.is_run = None  # until it has ended
    try:
        answer = await run(call._replace(service=RehearsedService(call.service, fault, rehearsed.seen)))
    except StorageError as error:
        if error.status < 500:
            rehearsed.is_run = False
        raise
    if rehearsed.seen.is_cut:
        rehearsed.strike(Treatment.CUT)
    # a change set answers a refusal within its parts
    rehearsed.is_run = answer.status < 400 and call.observed.refusal is None
    if rehearsed.is_run and (fault.after is not None or fault.delivery is not None):
        rehearsed.strike(Treatment.FAILURE)
        if fault.after is not None:
            if session is not None:
                session.position = None  # it would tell that the write was committed
            raise fault.after
    return answer


async def finish(
    progress: Progress, service: Service, response: Response, *, is_lost: bool
) -> Deliver | None:
    """Record the exchange, and return how the answer is delivered if not as a whole; adds a header to the answer."""
    observed = progress.observed
    rehearsed = progress.rehearsed or await _count_refused(progress, service)
    if rehearsed is None:
        return None
    fault, delivery = rehearsed.call.fault or Fault(), rehearsed.delivery
    # without a body, the half of an answer is a half of its head
    is_withheld = delivery in WITHHELD or (delivery is Delivery.CUT and not response.body)
    exchange = describe_exchange(progress, rehearsed, response.status, response.headers)
    if is_lost or is_withheld:
        exchange.status = 0
    if rehearsed.struck:
        rules = tuple(rehearsed.struck)
        response.headers.append((DONE, ",".join(rules).encode()))
        observed.rehearsed = Rehearsed(
            rules, rehearsed.is_failure, is_withheld, exchange.applied, fault.delay
        )
        observed.started += fault.delay  # the server took no part in it
    try:
        await rehearsed.call.finish(exchange, observed.request_id)
    except StorageError as error:
        logger.warning("A request of a rehearsal was not recorded: %s", error)
    return None if delivery is None else deliver_as(delivery, fault.seconds)


async def _count_refused(progress: Progress, service: Service) -> RehearsedRequest | None:
    """Count a request of a rehearsal that was refused before its operation; no fault strikes it."""
    account, request = progress.account, progress.request
    if account is None or account.rehearser is None or request is None or request.method == "OPTIONS":
        return None
    if not may_count(account):
        return None
    try:
        call = await account.rehearser.begin(read_refused_facts(progress, account.kind), service.run)
    except StorageError:
        return None
    call.fault = None
    return RehearsedRequest(call)
