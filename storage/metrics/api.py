"""Metrics of an account or table over time, and marks of deployments in the management API."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.roles import Capability
from storage.domain.requests.series import PeriodCounts, Traffic, read_credential
from storage.metrics import reports, serializers
from storage.metrics.reports import Report, UnknownRange
from storage.metrics.sizes import Size
from storage.models import Table
from storage.rest.documentation import operation
from storage.rest.exceptions import InvalidParameters
from storage.rest.routing import ACCOUNT, TABLE, api_path
from storage.rest.views import AccountScopedViewSet

_DEFAULT: Final = timedelta(days=1)


_FIRST: Final = 20  # partitions and credentials


_UNKNOWN: Final = "Unknown"  # an operation that was not recognized, as for Prometheus


class MetricsViewSet(AccountScopedViewSet):
    tag = "Metrics"
    capabilities = {
        "retrieve": Capability.READ,
        "retrieve_table": Capability.READ,
        "mark": Capability.WRITE,
    }

    @operation(
        "get_metrics",
        "Get the metrics of an account",
        "Returns requests, errors, latencies, bytes and sizes in equal periods of a range of time, the most requested"
        " partitions, the most used credentials, and what was changed in the range.",
        answer=serializers.MetricsReportSerializer,
        query=serializers.MetricsParameters,
    )
    def retrieve(self, request: Request, account: str) -> Response:
        return self._report(None)

    @operation(
        "get_table_metrics",
        "Get the metrics of a table",
        "Counts requests that named the table, also refused ones.",
        answer=serializers.MetricsReportSerializer,
        query=serializers.MetricsParameters,
    )
    def retrieve_table(self, request: Request, account: str, table: str) -> Response:
        return self._report(self.table())

    def _report(self, table: Table | None) -> Response:
        parameters, now = self.read_query(), timezone.now()
        until = parameters["until"] or now
        since = parameters["since"] or until - _DEFAULT
        try:
            chosen = reports.choose_range(since, until, now, parameters["step"])
        except UnknownRange as error:
            raise InvalidParameters(
                {"since" if parameters["step"] is None else "step": [str(error)]}
            ) from None
        return self.answer(_describe(reports.report(self.account, table, chosen), table))

    @operation(
        "mark_deployment",
        "Mark a deployment",
        "Charts of the account show from when on a new version of a client was used. The mark is an entry of the"
        " activity log.",
        body=serializers.NewDeploymentSerializer,
        answer=serializers.MarkSerializer,
        is_creation=True,
        example={"name": "shop 2.4.1"},
    )
    def mark(self, request: Request, account: str) -> Response:
        marked = reports.mark_deployment(self.account, self.read_body()["name"], by=self.by)
        return self.answer_created(marked, is_new=True)


def _describe(report: Report, table: Table | None) -> dict[str, Any]:
    total = report.total
    return {
        "since": report.range.since,
        "until": report.range.until,
        "step": report.range.step,
        "total": _describe_total(total),
        "periods": [
            {
                "at": at,
                "observed": observed,
                **_describe_total(counts),
                "operations": {
                    name or _UNKNOWN: it.requests for name, (it, _) in counts.by_operation().items()
                },
                "error_codes": _by_code(counts.errors()),
                **_describe_size(size, table),
            }
            for at, observed, counts, size in zip(
                report.range.periods, report.observed, report.counts, report.sizes, strict=True
            )
        ],
        "operations": [
            {"operation": name or _UNKNOWN, **_describe_traffic(traffic, errors)}
            for name, (traffic, errors) in total.by_operation().items()
        ],
        "errors": [
            {"status": status, "code": code, "requests": number}
            for (status, code), number in total.errors().items()
        ],
        "partitions": [
            _describe_partition(key, number, table) for key, number in total.partitions.top(_FIRST)
        ],
        "partitions_missed": total.partitions.missed,
        "credentials": [
            dict(zip(("authentication", "name"), read_credential(key), strict=True), requests=number)
            for key, number in total.credentials.top(_FIRST)
        ],
        "marks": report.marks,
    }


def _describe_total(counts: PeriodCounts) -> dict[str, Any]:
    return _describe_traffic(counts.total(), counts.failed)


def _describe_traffic(traffic: Traffic, errors: int) -> dict[str, Any]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {
        "requests": traffic.requests,
        "errors": errors,
        "ingress": traffic.ingress,
        "egress": traffic.egress,
        **{name: traffic.percentile(share) for name, share in shares.items()},
    }


def _by_code(errors: Mapping[tuple[int, str], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (status, code), number in errors.items():
        found[code or str(status)] = found.get(code or str(status), 0) + number
    return found


def _describe_size(size: Size | None, table: Table | None) -> dict[str, int | None]:
    if size is None:
        return dict.fromkeys(Size._fields)
    return {**size._asdict(), "history": size.history if table is None else None}


def _describe_partition(key: str, number: int, table: Table | None) -> dict[str, object]:
    if table is None:
        name, _, key = key.partition("/")
    else:
        name = table.name
    return {"table": name, "partition_key": key, "requests": number}


urlpatterns = [
    api_path(f"{ACCOUNT}/metrics", MetricsViewSet, "metrics", get="retrieve"),
    api_path(f"{TABLE}/metrics", MetricsViewSet, "table-metrics", get="retrieve_table"),
    api_path(f"{ACCOUNT}/deployments", MetricsViewSet, "deployments", post="mark"),
]
