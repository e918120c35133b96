"""Rehearsals and their requests, as the doors show them."""

from collections.abc import Collection, Iterable, Sequence
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
        name: write_time(value) if isinstance(value, datetime) else value
        for name, value in asdict(summary).items()
    }


def write_time(moment: datetime) -> str:
    """Serialize a time as the management API does."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _by_rehearsal(rows: QuerySet[Any], number: Sum | Count) -> dict[int, int]:
    # without an order, which would be a part of the groups
    return dict(
        rows.order_by().values("rehearsal").annotate(number=number).values_list("rehearsal", "number")
    )


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
