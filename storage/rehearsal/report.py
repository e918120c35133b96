"""Reports on the behaviour of clients in a rehearsal."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, islice
from threading import Lock
from typing import Any, Final

from django.db.models import Sum, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from storage.domain.translation import mark as _
from storage.models import Rehearsal, RehearsalClient, RehearsedRequest
from storage.rehearsal import other_findings, page_findings, rehearsals, retry_findings, write_findings
from storage.rehearsal.evidence import Attempt, Case, ClientLog, gather, sort_findings
from storage.rehearsal.findings import Finding, FindingKind
from storage.rehearsal.findings import Severity as Severity
from storage.rehearsal.records import load_exchange
from storage.rehearsal.summaries import RehearsalSummary, dump_summary, summarize
from storage.rehearsal.write_findings import SharedEntities

CLIENTS_LIMIT: Final = 200  # those with the most requests
REQUESTS_LIMIT: Final = 200_000  # read for a report, all clients together
LEAST_REQUESTS: Final = 1_000  # read of each client
CHANGES_LIMIT: Final = 200_000  # changes of entities that are read of each client
_CHUNK: Final = 2_000  # rows
_LONG: Final = 1.0  # seconds for a report
_TIMES: Final = 5

# a large report needs much memory and time
_one_at_a_time: Final = Lock()
_recent: Final[dict[int, tuple[float, Sequence["ClientReport"]]]] = {}

FINDERS: Final[Sequence[Callable[[ClientLog], Iterator[Case]]]] = (
    page_findings.find_ignored_token,
    retry_findings.find_not_retried,
    retry_findings.find_retried_at_once,
    retry_findings.find_retried_before_retry_after,
    retry_findings.find_retried_refused,
    retry_findings.find_retries_exhausted,
    write_findings.find_insert_repeated,
    write_findings.find_inserted_twice,
    write_findings.find_update_repeated,
    write_findings.find_delete_repeated,
    write_findings.find_added_twice,
    write_findings.find_stale_read,
    other_findings.find_expired_sas,
    other_findings.find_hot_partition,
    other_findings.find_gave_up,
    other_findings.find_azure_refuses,
)
HELD: Final = _("held under %(set)s (seed %(seed)s)")


@dataclass(frozen=True)
class ClientReport:
    """Findings about a client: an agent with a credential."""

    agent: str
    credential: str
    requests: int
    faulted: int
    findings: Sequence[Finding]


AgentFinding = tuple[str, FindingKind]


@dataclass(frozen=True)
class Comparison:
    """Difference from the findings of the previous rehearsal with the same set and scope."""

    rehearsal: Rehearsal
    new: Sequence[AgentFinding]
    gone: Sequence[AgentFinding]
    kept: Sequence[AgentFinding]


@dataclass(frozen=True)
class Report:
    """Report on a rehearsal, which may still run."""

    summary: RehearsalSummary
    clients: Sequence[ClientReport]
    comparison: Comparison | None

    @property
    def is_final(self) -> bool:
        """Return whether the rehearsal has ended."""
        return self.summary.state == "ended"

    @property
    def held(self) -> bool:
        """Return whether there were requests, and no finding is a fault."""
        findings = (finding for client in self.clients for finding in client.findings)
        return self.summary.requests > 0 and all(
            finding.severity is not Severity.FAULT for finding in findings
        )

    @property
    def badge(self) -> str:
        """English text of a badge; empty if a fault was found, or the rehearsal runs."""
        if not self.held or not self.is_final:
            return ""
        return HELD % {"set": self.summary.set, "seed": self.summary.seed}


def _count_requests(rehearsal: Rehearsal) -> int:
    return RehearsalClient.objects.filter(rehearsal=rehearsal).aggregate(sum=Sum("requests"))["sum"] or 0


def make_report(rehearsal: Rehearsal) -> Report:
    """Report on a rehearsal, compared with the one before."""
    clients = _report_clients(rehearsal)
    before = rehearsals.before(rehearsal)
    [summary] = summarize([rehearsal])
    return Report(summary, clients, None if before is None else _compare(before, clients))


def _compare(before: Rehearsal, clients: Sequence[ClientReport]) -> Comparison:
    then, now = _agent_findings(_report_clients(before)), _agent_findings(clients)
    return Comparison(
        before,
        [it for it in now if it not in then],
        [it for it in then if it not in now],
        [it for it in now if it in then],
    )


def _agent_findings(clients: Sequence[ClientReport]) -> list[AgentFinding]:
    return list(
        dict.fromkeys((client.agent, finding.kind) for client in clients for finding in client.findings)
    )


def find_cases(log: ClientLog) -> Iterator[Case]:
    """Find all cases that the requests of one client show."""
    return chain.from_iterable(find(log) for find in FINDERS)


def _report_clients(rehearsal: Rehearsal) -> Sequence[ClientReport]:
    ended = rehearsals.ended_at(rehearsal)
    if ended is None:
        return _report_running(rehearsal)
    # requests that were under way at the end may still be recorded
    requests = RehearsedRequest.objects.filter(rehearsal=rehearsal)
    last = requests.order_by("-pk").values_list("pk", flat=True).first()
    return _report_ended(rehearsal, ended, _count_requests(rehearsal), last)


def _report_running(rehearsal: Rehearsal) -> Sequence[ClientReport]:
    """Report on a running rehearsal; a report that took long is used again for some times as long."""
    with _one_at_a_time:
        until, reports = _recent.get(rehearsal.pk, (0.0, ()))
        began = time.monotonic()
        if began < until:
            return reports
        reports = _read_reports(rehearsal, None)
        ended = time.monotonic()
        _recent.clear()
        if ended - began >= _LONG:
            _recent[rehearsal.pk] = ended + _TIMES * (ended - began), reports
        return reports


@lru_cache(maxsize=256)
def _report_ended(
    rehearsal: Rehearsal, ended: datetime, requests: int, last: int | None
) -> Sequence[ClientReport]:
    """Report on an ended rehearsal once; the arguments change when its requests do."""
    with _one_at_a_time:
        return _read_reports(rehearsal, ended)


def _read_reports(rehearsal: Rehearsal, ended: datetime | None) -> Sequence[ClientReport]:
    rows = list(
        RehearsalClient.objects.filter(rehearsal=rehearsal).order_by("-requests", "pk")[:CLIENTS_LIMIT]
    )
    limit = max(LEAST_REQUESTS, REQUESTS_LIMIT // max(1, len(rows)))
    senders = _read_senders(rehearsal) if len(rows) > 1 else {}
    now = time.time()
    shared = SharedEntities()
    findings: dict[int, list[Finding]] = {}
    faulted: dict[int, int] = {}
    for row in rows:
        attempts = _read_attempts(row, limit)
        log = ClientLog(
            row.agent,
            row.credential,
            attempts,
            is_whole=len(attempts) >= row.requests,
            ended=None if ended is None else ended.timestamp(),
            now=now,
            scale=rehearsal.scale,
            number=row.pk,
            senders=senders,
        )
        faulted[row.pk] = sum(attempt.exchange.faulted for attempt in attempts)
        findings[row.pk] = gather(find_cases(log), row.agent)
        if len(rows) > 1:
            shared.add(row.pk, log)
    agents = {row.pk: row.agent for row in rows}
    return tuple(
        ClientReport(
            row.agent,
            row.credential,
            row.requests,
            faulted[row.pk],
            sort_findings([*findings[row.pk], *gather(shared.find_lost_updates(row.pk, agents), row.agent)]),
        )
        for row in rows
    )


def _read_senders(rehearsal: Rehearsal) -> dict[str, set[int]]:
    """Return which clients sent each continuation token."""
    senders: dict[str, set[int]] = {}
    sent = RehearsedRequest.objects.filter(rehearsal=rehearsal, exchange__has_key="token")
    texts = sent.annotate(token=KeyTextTransform("token", "exchange"))
    for token, client in texts.values_list("token", "client_id")[:REQUESTS_LIMIT].iterator(_CHUNK):
        senders.setdefault(token, set()).add(client)
    return senders


def _read_attempts(client: RehearsalClient, limit: int) -> list[Attempt]:
    """Read the first requests of a client, as many as fit."""
    rows = (
        RehearsedRequest.objects.filter(client=client, number__lte=limit)
        .annotate(written=Cast("exchange", TextField()), named=Cast("request_id", TextField()))
        .order_by("pk")
        .values_list("written", "named")
        .iterator(_CHUNK)
    )
    attempts: list[Attempt] = []
    changes = 0
    while changes < CHANGES_LIMIT and (chunk := list(islice(rows, _CHUNK))):
        # one text for all is parsed faster
        exchanges = map(load_exchange, json.loads(f"[{','.join(written for written, name in chunk)}]"))
        read = [Attempt(exchange, name) for exchange, (_written, name) in zip(exchanges, chunk, strict=True)]
        changes += sum(len(attempt.exchange.changes) for attempt in read)
        attempts += read
    attempts.sort(key=lambda attempt: attempt.began)
    return attempts


def dump_report(report: Report) -> dict[str, Any]:
    """Convert a report to JSON, with English sentences."""
    summary, comparison = report.summary, report.comparison
    return {
        "rehearsal": {name: value for name, value in dump_summary(summary).items() if name != "rules"},
        "held": report.held,
        "badge": report.badge,
        "requests": summary.requests,
        "faulted": summary.faulted,
        "is_final": report.is_final,
        "clients": [_dump_client(client) for client in report.clients],
        "compared_with": None
        if comparison is None
        else {
            "id": comparison.rehearsal.pk,
            "new": _dump_agent_findings(comparison.new),
            "gone": _dump_agent_findings(comparison.gone),
            "kept": _dump_agent_findings(comparison.kept),
        },
    }


def _dump_agent_findings(findings: Sequence[AgentFinding]) -> list[dict[str, str]]:
    return [{"agent": agent, "kind": kind.value} for agent, kind in findings]


def _dump_client(client: ClientReport) -> dict[str, Any]:
    return {
        "agent": client.agent,
        "credential": client.credential,
        "requests": client.requests,
        "faulted": client.faulted,
        "findings": [
            {
                "kind": finding.kind.value,
                "severity": finding.severity.value,
                "text": finding.text,
                "remedy": finding.remedy,
                "count": finding.count,
                "requests": list(finding.requests),
            }
            for finding in client.findings
        ],
    }
