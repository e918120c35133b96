"""Metrics as the management API shows and reads them."""

from datetime import datetime
from typing import Annotated, Any, Final

from rest_framework import serializers

from storage.activity.serializers import ActorSerializer, DetailField
from storage.domain.requests.observed import Authentication
from storage.metrics.reports import POINTS_LIMIT
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    InstantField,
    IntegerParameterField,
    QueryParameters,
    StrictCharField,
    StrictSerializer,
)

_PERCENTILE: Final = (
    "Seconds within which {} % of the requests were answered, at most 13 % off; null without requests."
)


class MetricsParameters(QueryParameters):
    since = InstantField(
        default=None, help_text="Start of the range, at most 90 days ago. Default: 24 hours ago."
    )
    until = InstantField(default=None, help_text="End of the range. Default: now.")
    step = IntegerParameterField(
        default=None,
        min_value=1,
        max_value=1440,
        help_text="Length of a period in minutes, a divisor of 1440. Default: one with about 100 periods. Minutes are"
        f" kept for a day, 15 minutes for 8 days, 2 hours for 90 days; an answer has at most {POINTS_LIMIT} periods.",
    )

    def validate_step(self, step: int | None) -> int | None:
        if step is not None and 1440 % step:
            raise serializers.ValidationError("Give a divisor of 1440.")
        return step


class NewDeploymentSerializer(StrictSerializer):
    name = StrictCharField(max_length=100, help_text="What was deployed, such as `shop 2.4.1`.")


class MarkSerializer(TypedSerializer):
    """An activity marked in a chart."""

    id: Annotated[int, "Of the entry in the activity log."]
    at: datetime
    verb: Annotated[str, "Such as `deployment.mark` or `policies.set`."]
    actor: Annotated[ActorSerializer, {"source": "*"}]
    table: Annotated[str, {"source": "table_name"}, "Empty: of the whole account."]
    detail: dict[str, Any] = DetailField()


class TrafficSerializer(TypedSerializer):
    requests: int
    ingress: Annotated[int, "Bytes of request bodies."]
    egress: Annotated[int, "Bytes of response bodies."]
    p50: Annotated[float | None, _PERCENTILE.format(50)]
    p95: Annotated[float | None, _PERCENTILE.format(95)]
    p99: Annotated[float | None, _PERCENTILE.format(99)]
    errors: Annotated[int, "Requests that were answered with a status of 400 or more."]


class OperationTrafficSerializer(TrafficSerializer):
    operation: str


class ErrorCountSerializer(TypedSerializer):
    status: int
    code: str
    requests: int


class MetricsPeriodSerializer(TrafficSerializer):
    at: Annotated[datetime, "Its start."]
    observed: Annotated[bool, "False: no server ran."]
    operations: Annotated[dict[str, int], "Requests by operation."]
    error_codes: Annotated[dict[str, int], "Errors by code."]
    entities: Annotated[int | None, "An estimate; null before the first sample."]
    size: Annotated[int | None, "Bytes on disk."]
    history: Annotated[int | None, "Bytes on disk of the history; of an account only."]


class PartitionTrafficSerializer(TypedSerializer):
    table: str
    partition_key: Annotated[str, "Ends with an ellipsis if it is longer than 128 characters."]
    requests: Annotated[int, "At least so many."]


class CredentialTrafficSerializer(TypedSerializer):
    authentication: Authentication
    name: Annotated[
        str, "`key1` or `key2`, the fingerprint of a SAS token, or the subject of a bearer token."
    ]
    requests: Annotated[int, "At least so many."]


class MetricsReportSerializer(TypedSerializer):
    since: datetime
    until: datetime
    step: Annotated[int, "Length of a period in minutes."]
    total: TrafficSerializer
    periods: list[MetricsPeriodSerializer]
    operations: Annotated[list[OperationTrafficSerializer], "The most frequent first."]
    errors: Annotated[list[ErrorCountSerializer], "The most frequent first."]
    partitions: Annotated[list[PartitionTrafficSerializer], "The most requested first."]
    partitions_missed: Annotated[
        int, "By how much the requests of a partition may be too low: few are counted in each period."
    ]
    credentials: Annotated[list[CredentialTrafficSerializer], "The most used first."]
    marks: Annotated[list[MarkSerializer], "Changes that may explain a difference, the oldest first."]
