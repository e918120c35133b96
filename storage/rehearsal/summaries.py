"""Rehearsals, their clients and requests, as the doors show them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from storage.core.rehearsals import Exchange
from storage.models import Rehearsal, RehearsalClient, RehearsedRequest
from storage.rehearsal import rehearsals
from storage.rehearsal.records import load_exchange

FAULTED = Q(exchange__has_key="faulted")


@dataclass(frozen=True, slots=True)
class RehearsalSummary:
    """Rehearsal with the numbers of its requests."""

    id: int
    set: str
    seed: int
    scale: float
    table: str
    rules: Sequence[dict[str, Any]]
    started_at: datetime
    ends_at: datetime
    stopped_at: datetime | None
    state: str
    requests: int
    faulted: int


def summarize(rows: Iterable[Rehearsal]) -> list[RehearsalSummary]:
    """Return the summaries of rehearsals in their order."""
    listed = list(rows)
    keys, now = [row.pk for row in listed], timezone.now()
    counts = _by_rehearsal(RehearsalClient.objects.filter(rehearsal__in=keys), Sum("requests"))
    faulted = _by_rehearsal(RehearsedRequest.objects.filter(FAULTED, rehearsal__in=keys), Count("id"))
    return [
        RehearsalSummary(
            id=row.pk,
            set=row.set_name,
            seed=row.seed,
            scale=row.scale,
            table=row.table_name,
            rules=row.rules,
            started_at=row.started_at,
            ends_at=row.ends_at,
            stopped_at=row.stopped_at,
            state="running" if rehearsals.ended_at(row, now) is None else "ended",
            requests=counts.get(row.pk, 0),
            faulted=faulted.get(row.pk, 0),
        )
        for row in listed
    ]


def dump_summary(summary: RehearsalSummary) -> dict[str, Any]:
    """Serialize a summary to JSON."""
    return {
        # as the management API writes times
        name: value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        if isinstance(value, datetime)
        else value
        for name, value in asdict(summary).items()
    }


def _by_rehearsal(rows: QuerySet[Any], number: Sum | Count) -> dict[int, int]:
    # without an order, which would be a part of the groups
    return dict(
        rows.order_by().values("rehearsal").annotate(number=number).values_list("rehearsal", "number")
    )


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """Requests of a client in a rehearsal; those that rules struck are counted while they are recorded."""

    agent: str
    credential: str
    requests: int
    faulted: int
    by_rule: Mapping[str, int]


def count_clients(rehearsal: Rehearsal) -> list[ClientCounts]:
    """Return the counts of the clients of a rehearsal."""
    struck: dict[int, Counter[str]] = defaultdict(Counter)
    # without an order, which would be a part of the groups
    recorded = rehearsal.requests.order_by()
    faulted = dict(recorded.filter(FAULTED).values_list("client_id").annotate(number=Count("pk")))
    combinations = (
        recorded.filter(exchange__has_key="rules")
        .values("client_id", "exchange__rules")
        .annotate(number=Count("pk"))
    )
    for row in combinations:
        for rule in row["exchange__rules"]:
            struck[row["client_id"]][rule] += row["number"]
    return [
        ClientCounts(
            client.agent,
            client.credential,
            client.requests,
            faulted.get(client.pk, 0),
            dict(struck[client.pk].most_common()),
        )
        for client in rehearsal.clients.order_by("pk")
    ]


@dataclass(frozen=True, slots=True)
class RehearsedExchange:
    """Request of a rehearsal with its answer."""

    id: int
    request_id: UUID
    at: datetime
    number: int
    agent: str
    credential: str
    exchange: Exchange

    @property
    def seconds(self) -> float:
        return max(0.0, self.exchange.ended - self.exchange.began)


def exchanges(
    rehearsal: Rehearsal,
    *,
    agent: str = "",
    is_faulted: bool | None = None,
    request_ids: Collection[UUID] = (),
    after: int = 0,
    top: int,
) -> list[RehearsedExchange]:
    """Return the requests of a rehearsal after one, in the order in which they were answered.

    ``agent`` is a part of the user agents, in any case; ``request_ids`` are all if none are given.
    """
    rows = RehearsedRequest.objects.filter(rehearsal=rehearsal, pk__gt=after).select_related("client")
    if request_ids:
        rows = rows.filter(request_id__in=request_ids)
    if agent:
        rows = rows.filter(client__agent__icontains=agent)
    if is_faulted is not None:
        rows = rows.filter(FAULTED if is_faulted else ~FAULTED)
    return [
        RehearsedExchange(
            row.pk, row.request_id, row.at, row.number, row.client.agent, row.client.credential,
            load_exchange(row.exchange),
        )
        for row in rows.order_by("pk")[:top]
    ]  # fmt: skip
