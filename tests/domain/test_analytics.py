"""How requests are sorted, and the rows of the metrics tables."""

from datetime import UTC, datetime

import pytest

from storage.domain.access.grants import Operation
from storage.domain.requests import analytics
from storage.domain.requests.analytics import (
    Category,
    MetricsTable,
    categorize,
    column_name,
    find_metrics_table,
)
from storage.domain.requests.metrics import RequestKind, Tally
from storage.domain.requests.observed import Authentication
from storage.domain.service.service_properties import Metrics, ServiceProperties
from storage.domain.values.edm import Edm

HOUR = datetime(2026, 11, 21, 13, tzinfo=UTC)
DOUBLES = """
Availability AverageE2ELatency AverageServerLatency
PercentSuccess PercentThrottlingError PercentTimeoutError PercentServerOtherError
PercentClientOtherError PercentAuthorizationError PercentNetworkError
""".split()  # noqa: SIM905
INTEGERS = [
    *("TotalIngress", "TotalEgress", "TotalRequests", "TotalBillableRequests"),
    *(f"{who}{category}" for who in ("", "Anonymous", "SAS") for category in Category),
]


def kind(status=200, error="", operation=Operation.QUERY_ENTITY, authentication=Authentication.KEY):
    return RequestKind(1, False, operation, authentication, status, error)


def values(entity):
    return {name: value.value for name, value in entity.properties.items()}


# categories


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (200, "", "Success"),
        (204, "", "Success"),
        (304, "ConditionNotMet", "ClientOtherError"),
        (412, "UpdateConditionNotSatisfied", "ClientOtherError"),
        (401, "InvalidAuthenticationInfo", "AuthorizationError"),
        (403, "AuthorizationPermissionMismatch", "AuthorizationError"),
        (500, "OperationTimedOut", "ServerTimeoutError"),
        (500, "InternalError", "ServerOtherError"),
        (501, "NotImplemented", "ClientOtherError"),
        (503, "ServerBusy", "ThrottlingError"),
        (0, "", "NetworkError"),
    ],
)
def test_what_became_of_a_request(status, error, expected):
    assert categorize(status, error) == expected


def test_a_column_tells_how_the_request_was_authenticated():
    columns = {it: column_name(Category.SUCCESS, it) for it in Authentication}
    assert columns.pop(Authentication.SAS) == "SASSuccess"
    assert columns.pop(Authentication.ANONYMOUS) == "AnonymousSuccess"
    assert set(columns.values()) == {"Success"}


# rows


def test_has_the_columns_of_the_service():
    entity = analytics.transactions_entity(HOUR, "user;All", {})

    assert sorted(entity.properties) == sorted(INTEGERS + DOUBLES)
    assert {entity.properties[name].type for name in INTEGERS} == {Edm.INT64}
    assert {entity.properties[name].type for name in DOUBLES} == {Edm.DOUBLE}
    assert set(values(entity).values()) == {0}
    assert entity.key == ("20261121T1300", "user;All")


def test_sums_up_what_it_is_given():
    counted = {
        kind(): Tally(6, 10, 600, server_time=0.06, total_time=0.12),
        kind(authentication=Authentication.SAS): Tally(2, 5, 100, server_time=0.02, total_time=0.04),
        kind(404, "ResourceNotFound"): Tally(1, 1, 1, server_time=9, total_time=9),
        kind(503, "ServerBusy"): Tally(1, 0, 0),
        kind(500, "InternalError"): Tally(1, 0, 0),
        kind(500, "OperationTimedOut"): Tally(1, 0, 0),
        kind(403, "AuthenticationFailed", authentication=Authentication.ANONYMOUS): Tally(3, 0, 30),
        kind(0): Tally(1, 0, 0),
    }

    found = values(analytics.transactions_entity(HOUR, "user;All", counted))

    totals = {"TotalRequests": 16, "TotalIngress": 16, "TotalEgress": 731, "TotalBillableRequests": 13}
    once = ("ClientOtherError", "ThrottlingError", "ServerOtherError", "ServerTimeoutError", "NetworkError")
    outcomes = {"Success": 6, "SASSuccess": 2, "AnonymousAuthorizationError": 3, **dict.fromkeys(once, 1)}
    assert {name: value for name, value in found.items() if name in INTEGERS and value} == totals | outcomes
    assert found["AverageE2ELatency"] == pytest.approx(20)
    assert found["AverageServerLatency"] == pytest.approx(10)
    assert found["PercentSuccess"] == 50
    assert found["PercentTimeoutError"] == found["PercentNetworkError"] == 6.25
    assert found["PercentAuthorizationError"] == 18.75
    assert found["Availability"] == pytest.approx(100 * 13 / 15, abs=1e-5)
    percentages = [value for name, value in found.items() if name.startswith("Percent")]
    assert sum(percentages) == pytest.approx(100, abs=1e-5)


def test_a_row_for_all_and_one_for_each_operation():
    counted = {
        kind(): Tally(1),
        kind(404, "ResourceNotFound"): Tally(2),
        kind(operation=Operation.DELETE_TABLE): Tally(4),
        kind(403, "AuthenticationFailed", operation=None): Tally(8),
    }

    found = analytics.group_by_row_key(counted, include_apis=True)

    numbers = {key: sum(tally.requests for tally in tallies.values()) for key, tallies in found.items()}
    assert numbers == {"user;All": 15, "user;QueryEntity": 3, "user;DeleteTable": 4}
    assert list(analytics.group_by_row_key(counted, include_apis=False)) == ["user;All"]
    assert analytics.group_by_row_key({}, include_apis=True) == {"user;All": {}}


def test_the_capacity_of_a_day():
    entity = analytics.capacity_entity(datetime(2026, 1, 2, tzinfo=UTC), "data", 2**40, 3, 5)

    assert entity.key == ("20260102T0000", "data")
    assert values(entity) == {"Capacity": 2**40, "ContainerCount": 3, "ObjectCount": 5}
    assert {value.type for value in entity.properties.values()} == {Edm.INT64}


# tables


def test_names():
    for table in MetricsTable:
        assert find_metrics_table(table.lower()) is table
    assert find_metrics_table("$metricstransactionstable") is MetricsTable.HOUR_PRIMARY
    assert find_metrics_table("$metricscapacityblob") is MetricsTable.CAPACITY
    for name in ("$metricstransactionsblob", "people"):
        assert find_metrics_table(name) is None


def test_hours_and_minutes_are_measured_each_for_itself():
    hours = ServiceProperties(hour_metrics=Metrics(enabled=True), minute_metrics=Metrics())
    minutes = ServiceProperties(hour_metrics=Metrics(), minute_metrics=Metrics(enabled=True))

    of_minutes = {MetricsTable.MINUTE_PRIMARY, MetricsTable.MINUTE_SECONDARY}
    assert {table for table in MetricsTable if table.is_enabled(minutes)} == of_minutes
    assert {table for table in MetricsTable if table.is_enabled(hours)} == set(MetricsTable) - of_minutes
