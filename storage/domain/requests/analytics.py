"""Storage analytics: categories of requests, and the rows of the metrics tables.

https://learn.microsoft.com/rest/api/storageservices/storage-analytics-metrics-table-schema
https://learn.microsoft.com/rest/api/storageservices/storage-analytics-logged-operations-and-status-messages
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.requests.metrics import RequestKind, Tally
from storage.domain.requests.observed import Authentication
from storage.domain.requests.outcomes import is_server_failure
from storage.domain.service.service_properties import ServiceProperties
from storage.domain.values.edm import Edm, EdmValue

ALL_REQUESTS: Final = "user;All"


class MetricsTable(StrEnum):
    """The metrics tables."""

    HOUR_PRIMARY = "$MetricsHourPrimaryTransactionsTable"
    HOUR_SECONDARY = "$MetricsHourSecondaryTransactionsTable"
    MINUTE_PRIMARY = "$MetricsMinutePrimaryTransactionsTable"
    MINUTE_SECONDARY = "$MetricsMinuteSecondaryTransactionsTable"
    CAPACITY = "$MetricsCapacityTable"

    def is_enabled(self, properties: ServiceProperties) -> bool:
        """Return whether the table is written; capacity is measured with the hour metrics [inferred]."""
        is_minute = self in (MetricsTable.MINUTE_PRIMARY, MetricsTable.MINUTE_SECONDARY)
        return properties.minute_metrics.enabled if is_minute else properties.hour_metrics.enabled


_BY_NAME: Final = {table.lower(): table for table in MetricsTable} | {
    "$metricstransactionstable": MetricsTable.HOUR_PRIMARY,  # the name before 2013-08-15
    "$metricscapacityblob": MetricsTable.CAPACITY,  # with the same columns
}


def find_metrics_table(folded_name: str) -> MetricsTable | None:
    return _BY_NAME.get(folded_name)


class Category(StrEnum):
    """The outcome of a request; with the prefix of its authentication, a metrics column and a log status."""

    SUCCESS = "Success"
    THROTTLING = "ThrottlingError"
    CLIENT_TIMEOUT = "ClientTimeoutError"
    SERVER_TIMEOUT = "ServerTimeoutError"
    CLIENT_OTHER = "ClientOtherError"
    SERVER_OTHER = "ServerOtherError"
    AUTHORIZATION = "AuthorizationError"
    NETWORK = "NetworkError"


_PREFIXES: Final = {
    Authentication.ANONYMOUS: "Anonymous",
    Authentication.KEY: "",
    Authentication.SAS: "SAS",
    Authentication.BEARER: "",  # version 1.0 has no other authentication
}
# errors that the caller did not cause are free; throttling does not affect availability
_FREE: Final = frozenset({Category.THROTTLING, Category.SERVER_TIMEOUT, Category.SERVER_OTHER})
_PERCENTAGES: Final[Mapping[str, tuple[Category, ...]]] = {
    "PercentSuccess": (Category.SUCCESS,),
    "PercentThrottlingError": (Category.THROTTLING,),
    "PercentTimeoutError": (Category.CLIENT_TIMEOUT, Category.SERVER_TIMEOUT),
    "PercentServerOtherError": (Category.SERVER_OTHER,),
    "PercentClientOtherError": (Category.CLIENT_OTHER,),
    "PercentAuthorizationError": (Category.AUTHORIZATION,),
    "PercentNetworkError": (Category.NETWORK,),
}


def categorize(status: int, error: str) -> Category:
    """Return the category of a response by HTTP status and error code; status 0 means the client disconnected."""
    if status == 0:
        return Category.NETWORK
    if status < 300:
        return Category.SUCCESS
    if status in (401, 403):
        return Category.AUTHORIZATION
    if status == 503:
        return Category.THROTTLING
    if error == "OperationTimedOut":
        return Category.SERVER_TIMEOUT
    return Category.SERVER_OTHER if is_server_failure(status) else Category.CLIENT_OTHER


def column_name(kind: Category, authentication: Authentication) -> str:
    return _PREFIXES[authentication] + kind


# rows


def group_by_row_key(
    counted: Mapping[RequestKind, Tally], *, include_apis: bool
) -> dict[str, Mapping[RequestKind, Tally]]:
    """Group counts by RowKey: all requests and, with ``include_apis``, each operation."""
    found: dict[str, dict[RequestKind, Tally]] = {ALL_REQUESTS: dict(counted)}
    if include_apis:
        for kind, tally in counted.items():
            if kind.operation is not None:
                found.setdefault(f"user;{kind.operation}", {})[kind] = tally
    return dict(found)


def transactions_entity(period: datetime, row_key: str, counted: Mapping[RequestKind, Tally]) -> Entity:
    """Build the entity for these requests; all zeros if there are none."""
    categories = dict.fromkeys(Category, 0)
    columns = {column_name(kind, authentication): 0 for kind in Category for authentication in _PREFIXES}
    for kind, tally in counted.items():
        found = categorize(kind.status, kind.error)
        categories[found] += tally.requests
        columns[column_name(found, kind.authentication)] += tally.requests
    whole = sum_tallies(counted.values())
    billable = whole.requests - sum(categories[kind] for kind in _FREE)
    integers = {
        "TotalIngress": whole.ingress,
        "TotalEgress": whole.egress,
        "TotalRequests": whole.requests,
        "TotalBillableRequests": billable,
        **columns,
    }
    doubles = {
        "Availability": _percentage(billable, whole.requests - categories[Category.THROTTLING]),
        **_latencies(counted),
        **{
            name: _percentage(sum(categories[kind] for kind in kinds), whole.requests)
            for name, kinds in _PERCENTAGES.items()
        },
    }
    return _entity(period, row_key, integers, doubles)


def sum_tallies(tallies: Iterable[Tally]) -> Tally:
    whole = Tally()
    for tally in tallies:
        whole.add(tally)
    return whole


def _latencies(counted: Mapping[RequestKind, Tally]) -> dict[str, float]:
    """Return the average latencies of successful requests, in milliseconds."""
    whole = sum_tallies(
        tally for kind, tally in counted.items() if categorize(kind.status, kind.error) is Category.SUCCESS
    )
    number = max(whole.requests, 1)
    return {
        "AverageE2ELatency": round(1000 * whole.total_time / number, 3),
        "AverageServerLatency": round(1000 * whole.server_time / number, 3),
    }


def _percentage(part: int, whole: int) -> float:
    return round(100 * part / whole, 6) if whole else 0.0


def capacity_entity(period: datetime, row_key: str, size: int, containers: int, objects: int) -> Entity:
    """Build a capacity entity; ``row_key`` is "data" or "analytics" (the service's own tables), ``size`` in bytes."""
    return _entity(
        period, row_key, {"Capacity": size, "ContainerCount": containers, "ObjectCount": objects}, {}
    )


def _entity(
    period: datetime, row_key: str, integers: Mapping[str, int], doubles: Mapping[str, float]
) -> Entity:
    properties = {name: EdmValue(Edm.INT64, value) for name, value in integers.items()}
    properties |= {name: EdmValue(Edm.DOUBLE, value) for name, value in doubles.items()}
    return Entity(EntityKey(partition_key(period), row_key), properties)


def partition_key(period: datetime) -> str:
    return period.strftime("%Y%m%dT%H%M")
