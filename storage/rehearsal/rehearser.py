"""The choice of faults for the requests of an account, in each process."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from hashlib import blake2b
from math import ceil
from typing import Final

from django.utils import timezone

from storage.access import policies
from storage.core.rehearsals import (
    HEADER,
    Delivery,
    Exchange,
    Fault,
    PageCut,
    RehearsedCall,
    Rehearser,
    RequestFacts,
    Run,
    Treatment,
)
from storage.domain.access.grants import Operation
from storage.domain.access.policies import AccessPolicy
from storage.domain.errors import (
    InternalError,
    InvalidHeaderValue,
    OperationTimedOut,
    ServerBusy,
    StorageError,
)
from storage.domain.refusals import Refused
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.models import Account, Table
from storage.models import Rehearsal as RehearsalRow
from storage.rehearsal import rehearsals
from storage.rehearsal.chance import draw, lognormal, name_client
from storage.rehearsal.records import dump_exchange
from storage.rehearsal.rules import ANY, EFFECTS, Effect, Per, Rule, read_rules
from storage.sql import rehearsals as sql
from storage.sql.django import storable_text
from storage.sql.rehearsals import Counted, Rate

logger = logging.getLogger(__name__)

Chance = Callable[[str], float]  # a random number by its purpose

_ANY_ANSWERS: Final = ("timeout", "close", "reset")
_CLIENT_LIMIT: Final = 256  # characters of a user agent, and of a credential
_LONGEST_DELAY: Final = 60.0  # seconds, of all rules together
_ASKED: Final = -1  # place of the rule that a request asks for itself

_TREATMENTS: Final = {
    Effect.DELAY: Treatment.DELAY,
    Effect.CLOCK_SKEW: Treatment.SKEW,
    Effect.SHORT_PAGE: Treatment.CUT,
    Effect.STALE_SECONDARY: Treatment.LAG,
}


class AccountRehearser(Rehearser):
    """Rehearser of an account; without a running rehearsal, it serves requests that ask for a fault themselves."""

    def __init__(self, account: Account, row: RehearsalRow | None) -> None:
        self._account_id = account.pk
        self._row = row
        self._table = ""
        self._rules: tuple[Rule, ...] = ()
        self._ends_at = 0.0
        if row is not None:
            kind = AccountKind(account.kind)
            self._table = _fold(row.table_name, kind)
            self._rules = tuple(
                replace(rule, when=replace(rule.when, table=_fold(rule.when.table, kind)))
                for rule in read_rules(row.rules)
            )
            self._ends_at = row.ends_at.timestamp()
        self._late = [rule for rule in self._rules if rule.effect is Effect.LATE_POLICIES]

    @property
    def _is_running(self) -> bool:
        return self._row is not None and time.time() < self._ends_at

    def is_wanted(self, asked: bytes | None) -> bool:
        # every request asks this, so that a call is worth sparing
        return asked is not None or (self._row is not None and time.time() < self._ends_at)

    def policy_delay(self, table: str) -> float:
        if not self._late or not self._is_running or not self._is_about(table):
            return 0.0
        seconds = [rule.number("seconds") for rule in self._late if rule.when.table in ("", table)]
        return max(seconds, default=0.0)

    def former_policies(self, table_id: int, delay: float) -> Mapping[str, AccessPolicy] | None:
        table = Table(pk=table_id, account_id=self._account_id)
        former = policies.as_of(table, timezone.now() - timedelta(seconds=delay))
        return None if former is None else {it.identifier: it.policy or AccessPolicy() for it in former}

    def _is_about(self, table: str) -> bool:
        return self._table in ("", table)

    async def begin(self, facts: RequestFacts, run: Run) -> RehearsedCall:
        asked = None if facts.asked is None else _read_asked(facts.asked)
        row = self._row
        if row is None or not self._is_running or not self._is_about(facts.table):
            is_struck = asked is not None and asked.concerns(facts)
            fault = _make_fault([(asked, partial(_middle, facts))]) if asked and is_struck else None
            return _Call(None, None, fault, run)
        # a request that asks for a fault gets that one, whatever the rules are
        concerned = [
            (place, rule) for place, rule in enumerate(self._rules) if asked is None and rule.concerns(facts)
        ]
        places = {place for place, _ in concerned}
        rates = [self._rate(place, rule, facts) for place, rule in concerned if rule.when.rate]
        counted: Counted = await run(
            sql.count(
                row.pk,
                storable_text(facts.agent, _CLIENT_LIMIT),
                storable_text(facts.credential, _CLIENT_LIMIT),
                [int(place in places) for place in range(len(self._rules))],
                rates,
                facts.cost,
            )
        )
        client = name_client(facts.agent)
        struck: list[tuple[Rule, Chance]] = []
        if asked is not None and asked.concerns(facts):
            struck.append((asked, partial(draw, row.seed, _ASKED, client, counted.number)))
        for place, rule in concerned:
            if rule.when.rate and place not in counted.exceeded:
                continue
            number = counted.matches[place]
            if rule.when.strikes(number, draw(row.seed, place, client, number)):
                struck.append((rule, partial(draw, row.seed, place, client, number)))
        return _Call(row.pk, counted, _make_fault(struck) if struck else None, run, rates)

    def _rate(self, place: int, rule: Rule, facts: RequestFacts) -> Rate:
        when, row = rule.when, self._row
        assert row is not None
        counted_by = {
            Per.ACCOUNT: "",
            Per.TABLE: facts.table,
            Per.PARTITION: f"{facts.table}\0{facts.partition}",
        }[when.per]
        scope = blake2b(counted_by.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return Rate(place, scope, when.rate * row.scale)


def find(account: Account) -> AccountRehearser | None:
    """Return the rehearser of an account; None if it may not rehearse."""
    if not account.may_rehearse or account.protected:
        return None
    row = rehearsals.running(account)
    try:
        return AccountRehearser(account, row)
    except Refused as refused:  # a newer version has written the rules
        logger.warning("The rules of the rehearsal %s cannot be read: %s", row, refused)
        return AccountRehearser(account, None)


def _fold(table: str, kind: AccountKind) -> str:
    """Return the identity of a table; a name that no table can have stays as it is, and no request is about it."""
    with suppress(StorageError):
        return fold_table_name(table, kind) if table else ""
    return table


def _middle(facts: RequestFacts, purpose: str) -> float:
    """Return the chance of a request outside a rehearsal, which is the same every time.

    Only the first page may be empty, because a client that asks for the same with each token would never get further.
    """
    return 1.0 if facts.is_continued and purpose == "empty" else 0.5


def _make_fault(struck: Sequence[tuple[Rule, Chance]]) -> Fault:
    """Return what several rules do to a request: all delays, and the first of the failures and of the cuts."""
    fault = Fault()
    for rule, chance in struck:
        treatment = _TREATMENTS.get(rule.effect, Treatment.FAILURE)
        if treatment in (Treatment.FAILURE, Treatment.CUT) and fault.names(treatment):
            continue
        fault = replace(_treat(fault, rule, chance), rules=(*fault.rules, (treatment, rule.name)))
    return fault


def _treat(fault: Fault, rule: Rule, chance: Chance) -> Fault:
    match rule.effect:
        case Effect.DELAY:
            delay = lognormal(rule.number("p50"), rule.number("p99"), chance("delay")) / 1000
            return replace(fault, delay=min(fault.delay + delay, _LONGEST_DELAY))
        case Effect.SHORT_PAGE:
            is_empty = chance("empty") < rule.number("empty")
            return replace(fault, cut=PageCut(chance("place"), is_empty, rule.word("at") == "partition"))
        case Effect.STALE_SECONDARY:
            return replace(fault, lag=max(fault.lag, rule.number("lag")))
        case Effect.CLOCK_SKEW:
            return replace(fault, skew=rule.number("minutes") * 60)
    return _fail(fault, rule, chance)


def _fail(fault: Fault, rule: Rule, chance: Chance) -> Fault:
    match rule.effect:
        case Effect.THROTTLE:
            busy, seconds = ServerBusy(), rule.number("retry_after")
            busy.retry_after = ceil(seconds)
            busy.details["x-ms-retry-after-ms"] = str(ceil(seconds * 1000))  # in Cosmos accounts
            return replace(fault, before=busy)
        case Effect.ERROR:
            return replace(fault, before=InternalError())
        case Effect.AMBIGUOUS_APPLIED | Effect.AMBIGUOUS_UNAPPLIED:
            is_run, answer = rule.effect is Effect.AMBIGUOUS_APPLIED, rule.word("answer")
            if answer == ANY:
                answer = _ANY_ANSWERS[int(chance("answer") * len(_ANY_ANSWERS))]
            if answer != "timeout":
                seconds = rule.number("seconds")
                return replace(fault, delivery=Delivery(answer), is_run=is_run, seconds=seconds)
            if is_run:
                return replace(fault, after=OperationTimedOut())
            return replace(fault, before=OperationTimedOut())
        case Effect.CUT_ANSWER:
            return replace(fault, delivery=Delivery.CUT)
        case Effect.SLOW_ANSWER:
            return replace(fault, delivery=Delivery.SLOW, seconds=rule.number("seconds"))
    return fault


def _read_asked(text: str) -> Rule:
    """Parse the header of a request: an effect, and its parameters after semicolons, such as ``delay; p50=300``."""
    effect, *parts = (part.strip() for part in text.split(";"))
    written: dict[str, object] = {}
    for part in parts:
        name, _, value = (it.strip() for it in part.partition("="))
        try:
            written[name] = float(value)
        except ValueError:
            written[name] = value
    try:
        rule = read_rules([{**written, "effect": effect, "name": effect}])[0]
    except Refused as refused:
        raise InvalidHeaderValue(str(refused), HeaderName=HEADER, HeaderValue=text) from None
    if not EFFECTS[rule.effect].is_chosen or not written.keys() <= EFFECTS[rule.effect].parameters.keys():
        raise InvalidHeaderValue(HeaderName=HEADER, HeaderValue=text)
    return rule


class _Call(RehearsedCall):
    def __init__(
        self,
        rehearsal: int | None,
        counted: Counted | None,
        fault: Fault | None,
        run: Run,
        rates: Sequence[Rate] = (),
    ) -> None:
        self.fault = fault
        self._rehearsal = rehearsal
        self._counted = counted
        self._run = run
        self._rates = rates

    async def finish(self, exchange: Exchange, request_id: str) -> None:
        if self._rehearsal is None or self._counted is None or not self._counted.is_recorded:
            return
        is_query = exchange.operation == Operation.QUERY_ENTITIES and exchange.entities is not None
        charge = max(0, (exchange.entities or 0) - 1) if is_query and self._rates else 0
        await self._run(
            sql.record(
                self._rehearsal,
                self._counted,
                exchange.began,
                request_id,
                dump_exchange(exchange),
                charge,
                self._rates,
            )
        )
