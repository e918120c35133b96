"""The pages of metrics: charts with their tables, ranges, comparisons, and what changed."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.urls import reverse

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic
from storage.metrics import reports, series
from storage.metrics.series import Series
from storage.models import RegisteredSas, SizeSample
from storage.tables import tables

pytestmark = pytest.mark.django_db
FINGERPRINT = "ab" * 32


def text(answer):
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


def count(account, ago, requests, errors=0, operations=("QueryEntity",), bucket=10):
    """Record requests of some time ago for the table and its account."""
    minute = series.start_of(datetime.now(UTC) - ago, 1)
    of_table, whole = PeriodCounts(), PeriodCounts()
    for counts, prefix in ((of_table, ""), (whole, "people/")):
        for operation in operations:
            counts.traffic(SeriesKind(operation, 200)).add(Traffic(requests, 5, 2048, {bucket: requests}))
        if errors:
            kind = SeriesKind("InsertEntity", 409, "EntityAlreadyExists")
            counts.traffic(kind).add(Traffic(errors, 0, 0, {bucket: errors}))
        counts.partitions.add({f"{prefix}<b>hot</b>/er": requests}, 7)
        counts.credentials.add({"authenticated:key1": requests, f"sas:{FINGERPRINT}": 1})
    mine = Series(str(ago.total_seconds()))
    mine.add(minute, {(account.pk, ""): whole, (account.pk, "people"): of_table})
    mine.write()


PAGE = "/ui/a/acme/metrics/"


def test_an_account_shows_its_traffic_sizes_and_changes(visit, account, table):
    now = datetime.now(UTC)
    count(account, timedelta(minutes=20), 1234, errors=100)
    count(account, timedelta(hours=30), 667)
    for ago, entities in ((timedelta(days=2), 900), (timedelta(minutes=30), 1000)):
        SizeSample.objects.create(
            account=account, table_id=0, at=now - ago, entities=entities, size=3_000_000, history=500_000
        )
    RegisteredSas.objects.create(account=account, fingerprint=FINGERPRINT, label="nightly", parameters=[])
    reports.mark_deployment(account, "shop 2.4.1", by=Actor(ActorKind.USER, "eve"))

    alice = visit("alice")
    answer = alice.get(PAGE)
    shown = text(answer)
    for expected in (
        "requests 1,334 +100 %",
        "errors 7.50 % +7.50 points",
        "entities 1,000 +100",
        "size on disk 2.9 MB",
        "per 15 min",
        "QueryEntity 1,234",
        "409 EntityAlreadyExists 100",
        "<b>hot</b>/er people 1,234",
        "each number may be up to 7 too low",
        "nightly 1",
        "eve deployed shop 2.4.1",
    ):
        assert expected in shown, expected
    page = answer.content.decode()
    columns = json.loads(answer.context["charts"][0].columns)
    assert [sum(filter(None, it)) for it in columns] == [1234, 100]
    assert "by-code" not in page  # the legend leads to the requests
    assert "requests/?since=" in re.search(r'id="chart-errors".*?</ul>', page, re.DOTALL)[0]
    numbers = alice.get(PAGE, {"data": "1"})
    rows = text(numbers)
    assert "data-chart=" not in numbers.content.decode()
    assert "Requests by operation" in rows
    assert "1,234 100" in rows
    assert f"/sas/{FINGERPRINT}/" in page
    assert f"/sas/{FINGERPRINT}/" not in visit("victor").get(PAGE).content.decode()
    assert page.count("data-chart=") == 6
    part = alice.get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div class="stack metrics"')


def test_a_table_shows_its_own(visit, account, table):
    other = tables.create(account, "other")
    count(account, timedelta(minutes=20), 12)
    victor = visit("victor")
    shown = text(victor.get(reverse("metrics:table", args=("acme", "people"))))
    assert "requests 12" in shown
    assert "<b>hot</b>/er 12" in shown
    shown = text(victor.get(reverse("metrics:table", args=("acme", other.name))))
    assert "No requests in this time." in shown
    assert "No data in this period" in shown


def test_many_operations_are_one_series_besides_the_most_frequent(visit, account, table):
    count(account, timedelta(minutes=20), 10, operations=[f"Operation{number}" for number in range(9)])
    legend = re.search(
        r'id="chart-operations".*?</ul>', visit("victor").get(PAGE).content.decode(), re.DOTALL
    )[0]
    assert legend.count("<li") == 6
    assert "Others" in legend


def observe(ago):
    """Record that a server ran some time ago."""
    mine = Series(str(ago.total_seconds()))
    mine.add(series.start_of(datetime.now(UTC) - ago, 1), {})
    mine.write()


def test_a_young_server_begins_with_its_data(visit, account, table):
    client = visit("victor")
    for ago, query, minutes, step in (
        (timedelta(0), "range=24h", 1, "per 1 min"),
        (timedelta(minutes=40), "range=24h", 40, "per 1 min"),
        (timedelta(minutes=40), "range=1h", 40, "per 1 min"),
        (timedelta(hours=20), "range=7d", 20 * 60, "per 15 min"),
        (timedelta(hours=20), "range=1h", 60, "per 1 min"),
    ):
        observe(ago)
        answer = client.get(f"{PAGE}?{query}")
        chosen = answer.context["chosen"]
        assert 0 <= (chosen.until - chosen.since) / timedelta(minutes=1) - minutes < 2, (ago, query)
        assert step in text(answer), (ago, query)


def test_times_without_requests_are_zero_while_a_server_ran(visit, account, table):
    for minutes in (30, 29, 28, 20):
        observe(timedelta(minutes=minutes))
    count(account, timedelta(minutes=30), 7)
    answer = visit("victor").get(f"{PAGE}?range=1h")
    gaps = json.loads(answer.context["periods"])["gaps"]
    [values] = json.loads(answer.context["charts"][0].columns)
    assert (gaps[:3], gaps[5], gaps[-1]) == ([False] * 3, True, False)
    assert (values[:3], values[5], values[-1]) == ([7, 0, 0], None, 0)


def test_a_range_says_its_periods_or_its_fault(visit, account):
    observe(timedelta(days=89))
    client = visit("victor")
    for query, expected in [
        ("range=1h", "per 1 min"),
        ("range=7d", "per 2 h"),
        ("range=90d", "per day (UTC)"),
        ("range=odd", "per 15 min"),
        ("since=2020-01-01T00:00", "Metrics are kept for 90 days."),
        ("since=nonsense", "Enter both times"),
        ("until=2020-01-01T00:00", "Enter both times"),
        ("since=2999-01-01T00:00", "The range must begin before it ends"),
    ]:
        answer = client.get(f"{PAGE}?{query}")
        assert answer.status_code == 200, (query, expected)
        assert expected in text(answer), (query, expected)


def test_a_typed_range_is_in_the_zone_of_the_page(visit, account, table):
    count(account, timedelta(minutes=90), 55)
    now = datetime.now(UTC)
    alice = visit("alice")
    alice.cookies["tablero_zone"] = "Asia/Tokyo"
    tokyo = now + timedelta(hours=9)
    query = {
        "since": f"{tokyo - timedelta(hours=2):%Y-%m-%dT%H:%M}",
        "until": f"{tokyo - timedelta(hours=1):%Y-%m-%dT%H:%M}",
    }
    assert "requests 55" in text(alice.get(PAGE, query))
    zoomed = {"since": (now - timedelta(minutes=40)).isoformat(), "until": (now).isoformat()}
    assert "requests 0" in text(alice.get(PAGE, zoomed))
