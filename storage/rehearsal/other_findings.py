"""Findings about credentials, rates, timeouts of clients, and requests that Azure refuses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

from storage.domain.requests.strictness import RULES, Evidence, StrictRule
from storage.domain.requests.targets import PARTITION_TARGET
from storage.domain.translation import mark as _
from storage.rehearsal.evidence import Attempt, Case, ClientLog, show_key
from storage.rehearsal.findings import REQUESTS_LIMIT, FindingKind, Phrase, Severity

_EXPIRED: Final = re.compile(r"Expiry \[([^]]+)\] - Current \[([^]]+)\]")
_TIME_TO_RENEW: Final = 5.0  # seconds, for clients that send several requests at the same time
_HOT_SHARE: Final = 0.01  # throttled requests of a partition
_HOT_REQUESTS: Final = 5


def find_gave_up(log: ClientLog) -> Iterator[Case]:
    """Find requests whose client closed the connection before the answer."""
    for attempt in log.attempts:
        exchange = attempt.exchange
        if attempt.is_left:
            facts = {
                "operation": exchange.operation or exchange.method,
                "milliseconds": round((exchange.ended - exchange.began) * 1000),
            }
            yield Case(
                FindingKind.GAVE_UP,
                Severity.NOTE,
                _(
                    "The client closed the connection before the answer to %(operation)s, after %(milliseconds)s ms."
                ),
                facts,
                (attempt,),
            )


def find_azure_refuses(log: ClientLog) -> Iterator[Case]:
    """Find requests that Azure is known to refuse, while the account is friendly."""
    for attempt in log.attempts:
        for name in attempt.exchange.warnings:
            if name not in tuple(StrictRule):
                continue
            rule = RULES[StrictRule(name)]
            is_certain = rule.evidence is Evidence.OBSERVED and not rule.is_only_wording
            yield Case(
                FindingKind.AZURE_REFUSES,
                Severity.FAULT if is_certain else Severity.NOTE,
                _("Azure would refuse this request, %(operation)s: %(rule)s Source: %(source)s"),
                {
                    "operation": attempt.exchange.operation,
                    "rule": Phrase(rule.sentence),
                    "source": rule.source,
                },
                (attempt,),
            )


def find_expired_sas(log: ClientLog) -> Iterator[Case]:
    """Find uses of a SAS after it was refused because it had expired."""
    refused = [attempt for attempt in log.attempts if _is_expired(attempt)]
    if not refused:
        return
    known_from = refused[0].ended + (0.0 if log.is_sequential else _TIME_TO_RENEW)
    later = [attempt for attempt in refused if attempt.began >= known_from]
    if len(later) < 2:  # a single one may be an attempt of the user
        return
    yield Case(
        FindingKind.EXPIRED_SAS,
        Severity.FAULT,
        _(
            "A SAS was refused because it had expired. The client used it %(times)s times after that, for "
            "%(seconds)s s."
        ),
        {"times": len(later), "seconds": f"{later[-1].began - refused[0].ended:.1f}"},
        (refused[0], *later),
    )


def _is_expired(attempt: Attempt) -> bool:
    if attempt.exchange.status != 403:
        return False
    match = _EXPIRED.search(attempt.exchange.detail)
    if match is None:
        return False
    expiry, now = map(parsedate_to_datetime, match.groups())
    return expiry <= now


@dataclass(slots=True)
class _Bucket:
    """Leaking bucket of a partition: what Azure would have throttled."""

    level: float = 0.0
    at: float = 0.0
    requests: int = 0
    refused: int = 0
    attempts: list[Attempt] = field(default_factory=list)

    def add(self, attempt: Attempt, cost: int, rate: float) -> None:
        left_over = max(0.0, self.level - rate * max(0.0, attempt.began - self.at))
        is_over = left_over > 0 and left_over + cost > rate
        self.level, self.at = left_over + (0 if is_over else cost), attempt.began
        self.requests += 1
        if is_over:
            self.refused += 1
            if len(self.attempts) < REQUESTS_LIMIT:
                self.attempts.append(attempt)


def find_hot_partition(log: ClientLog) -> Iterator[Case]:
    """Find partitions that got more requests than the documented target, times the scale of the rehearsal."""
    rate = PARTITION_TARGET * log.scale
    buckets: dict[tuple[str, str], _Bucket] = {}
    for attempt in log.attempts:
        exchange = attempt.exchange
        if exchange.partition is not None:
            bucket = buckets.setdefault((exchange.table.lower(), exchange.partition), _Bucket())
            bucket.add(attempt, max(1, len(exchange.changes)), rate)
    for (table, partition), bucket in buckets.items():
        if bucket.refused < max(_HOT_REQUESTS, _HOT_SHARE * bucket.requests):
            continue
        yield Case(
            FindingKind.HOT_PARTITION,
            Severity.NOTE,
            _(
                "The client sent %(requests)s requests to the partition %(partition)s of %(table)s. At a target of "
                "%(target)s entities a second, %(percent)s %% of them would have been throttled."
            ),
            {
                "table": table,
                "partition": show_key(partition),
                "requests": bucket.requests,
                "target": f"{rate:g}",
                "percent": round(100 * bucket.refused / bucket.requests),
            },
            bucket.attempts,
        )
