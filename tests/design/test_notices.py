"""Notices about hot partitions: by their rate alone, over whole minutes."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.core.notices import Look
from storage.design.conditions import find_hot_partitions
from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic, write_counts
from storage.metrics.series import WHOLE
from storage.models import Notice, RequestSeries
from storage.notices import evaluation

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC).replace(second=30, microsecond=0)
MINUTE = timedelta(minutes=1)


def count(table, partitions, *, minutes=5, now=NOW):
    """Count so many requests to each partition in each of the minutes before this one."""
    counts = PeriodCounts()
    counts.traffic(SeriesKind("InsertEntity", 201)).add(Traffic(sum(partitions.values())))
    counts.partitions.add(partitions)
    for table_id in (WHOLE, table.pk):
        for number in range(1, minutes + 1):
            RequestSeries.objects.create(
                account_id=table.account_id,
                table_id=table_id,
                process="a",
                minutes=1,
                period=(now - number * MINUTE).replace(second=0),
                counts=write_counts(counts),
            )


def opened(now=NOW):
    evaluation.evaluate(now)
    return list(Notice.objects.filter(kind="partition.hot", resolved_at=None))


def test_a_hot_partition_opens_a_notice_and_resolves_after_a_calm(table):
    count(table, {"today": 70_000, "other": 10_000})
    [notice] = opened()
    assert notice.subject == "people"
    assert notice.facts == {
        "partition": "today", "table": "people", "rate": 1167, "minutes": 5, "share": 88, "percent": 58,
    }  # fmt: skip
    assert opened(NOW + 10 * MINUTE) == []


@pytest.mark.parametrize(
    ("partitions", "minutes"),
    [
        ({"only": 300}, 5),  # all of small traffic
        ({str(number): 20_000 for number in range(10)}, 5),  # much traffic, spread
        ({"today": 70_000}, 1),  # a peak of one minute
    ],
)
def test_other_traffic_opens_none(table, partitions, minutes):
    count(table, partitions, minutes=minutes)
    assert opened() == []


def test_its_threshold_is_a_percentage_of_the_target(table):
    count(table, {"today": 13_000})
    assert list(find_hot_partitions(Look(NOW, 50))) == []
    assert [it.facts["percent"] for it in find_hot_partitions(Look(NOW, 10))] == [11]
