"""Counts of the requests of rehearsals by client, and of the rules that struck them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count

from storage.models import Rehearsal, RehearsalClient, RehearsedRequest
from storage.rehearsal.summaries import FAULTED


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """Requests of a client in a rehearsal; those that rules struck are counted while they are recorded."""

    pk: int
    agent: str
    credential: str
    requests: int
    faulted: int
    by_rule: Mapping[str, int]


def count_clients(several: Collection[Rehearsal]) -> dict[int, Sequence[ClientCounts]]:
    """Return the counts of the clients of rehearsals, by the number of the rehearsal."""
    struck: dict[int, Counter[str]] = defaultdict(Counter)
    recorded = RehearsedRequest.objects.filter(rehearsal__in=several).order_by()
    faulted = dict(recorded.filter(FAULTED).values_list("client_id").annotate(number=Count("pk")))
    # without an order, which would be a part of the groups
    combinations = (
        recorded.filter(exchange__has_key="rules")
        .values("client_id", "exchange__rules")
        .annotate(number=Count("pk"))
    )
    for row in combinations:
        for rule in row["exchange__rules"]:
            struck[row["client_id"]][rule] += row["number"]
    counts: dict[int, list[ClientCounts]] = {one.pk: [] for one in several}
    for client in RehearsalClient.objects.filter(rehearsal__in=several).order_by("pk"):
        counts[client.rehearsal_id].append(
            ClientCounts(
                client.pk,
                client.agent,
                client.credential,
                client.requests,
                faulted.get(client.pk, 0),
                dict(struck[client.pk].most_common()),
            )
        )
    return dict(counts)
