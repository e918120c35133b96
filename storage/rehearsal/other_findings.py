"""Findings that need no more than one request each: timeouts of clients, and requests that Azure refuses."""

from collections.abc import Iterator

from storage.domain.requests.strictness import RULES, Evidence, StrictRule
from storage.domain.translation import mark as _
from storage.rehearsal.evidence import Case, ClientLog, gave_up
from storage.rehearsal.findings import FindingKind, Phrase, Severity


def find_gave_up(log: ClientLog) -> Iterator[Case]:
    """Find requests whose client closed the connection before the answer."""
    for attempt in log.attempts:
        exchange = attempt.exchange
        if gave_up(exchange):
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
