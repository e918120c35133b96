"""Metrics of accounts and tables, and marks of deployments."""

from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.requests.series import PeriodCounts, SeriesKind, Traffic
from storage.metrics import series, sizes
from storage.metrics.series import Series
from tests.rest.test_errors import check

pytestmark = pytest.mark.django_db


@pytest.fixture
def counted(account, table):
    """Count requests of ten minutes ago."""
    counts = PeriodCounts()
    counts.traffic(SeriesKind("QueryEntity", 200)).add(Traffic(8, 0, 800, {10: 8}))
    counts.traffic(SeriesKind("InsertEntity", 409, "EntityAlreadyExists")).add(Traffic(2, 20, 200, {20: 2}))
    counts.partitions.add({"hot": 6})
    counts.credentials.add({"authenticated:key1": 7, "sas:abab": 3})
    whole = PeriodCounts()
    whole.add(counts)
    whole.partitions.counts = {"people/hot/er": 6}
    mine = Series("one")
    minute = series.start_of(datetime.now(UTC) - timedelta(minutes=10), 1)
    mine.add(minute, {(account.pk, ""): whole, (account.pk, "People"): counts})
    mine.write()
    sizes.sample(datetime.now(UTC))
    return minute


def test_answers_the_metrics_of_an_account_and_of_a_table(call, counted):
    victor = call("victor", "read")
    result = victor("GET", "accounts/acme/metrics").json()
    assert (result["step"], len(result["periods"])) in ((15, 96), (15, 97))
    assert {name: result["total"][name] for name in ("requests", "errors", "ingress", "egress")} == {
        "requests": 10, "errors": 2, "ingress": 20, "egress": 1000,
    }  # fmt: skip
    assert 0.0008 < result["total"]["p50"] < 0.001 < 0.008 < result["total"]["p99"] <= 0.01
    assert [(it["operation"], it["requests"], it["errors"]) for it in result["operations"]] == [
        ("QueryEntity", 8, 0),
        ("InsertEntity", 2, 2),
    ]
    assert result["errors"] == [{"status": 409, "code": "EntityAlreadyExists", "requests": 2}]
    assert result["partitions"] == [{"table": "people", "partition_key": "hot/er", "requests": 6}]
    assert result["credentials"][0] == {"authentication": "authenticated", "name": "key1", "requests": 7}
    assert result["marks"][-1]["verb"] == "table.create"
    last = result["periods"][-1]
    assert (last["entities"], last["history"] is None) == (0, False)

    result = victor("GET", "accounts/acme/tables/PEOPLE/metrics?step=1").json()
    [busy] = [it for it in result["periods"] if it["requests"]]
    assert datetime.fromisoformat(busy["at"]) == counted
    assert busy["observed"] is True
    assert busy["operations"] == {"QueryEntity": 8, "InsertEntity": 2}
    assert busy["error_codes"] == {"EntityAlreadyExists": 2}
    assert result["partitions"] == [{"table": "people", "partition_key": "hot", "requests": 6}]
    idle = result["periods"][0]
    assert (idle["observed"], idle["requests"], idle["p95"]) == (False, 0, None)


def test_refuses_ranges_that_are_not_kept(call, table):
    victor = call("victor", "read")
    for query in (
        "since=2020-01-01T00:00:00Z",
        "since=2999-01-01T00:00:00Z",
        "step=7",
        "step=1&since=" + (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    ):
        check(victor("GET", f"accounts/acme/metrics?{query}"), 400)
    check(victor("GET", "accounts/acme/tables/nothing/metrics"), 404)


def test_editors_mark_deployments(call, account):
    answer = call("eve", "write")("POST", "accounts/acme/deployments", {"name": "shop 2.4.1"})
    assert answer.status_code == 201
    assert answer.json()["detail"] == {"deployment": "shop 2.4.1"}
    [mark] = call("victor", "read")("GET", "accounts/acme/metrics").json()["marks"]
    assert (mark["verb"], mark["actor"]["name"]) == ("deployment.mark", "eve")
