"""Counts of the requests of rehearsals by client, and of the rules that struck them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count

from storage.models import Rehearsal, RehearsalClient, RehearsedRequest


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
    faulted: Counter[int] = Counter()
    # without an order, which would be a part of the groups
    combinations = (
        RehearsedRequest.objects.filter(rehearsal__in=several, exchange__has_key="rules")
        .order_by()
        .values("client_id", "exchange__rules")
        .annotate(number=Count("pk"))
    )
    for row in combinations:
        faulted[row["client_id"]] += row["number"]
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
                faulted[client.pk],
                dict(struck[client.pk].most_common()),
            )
        )
    return dict(counts)
