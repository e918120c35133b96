"""Metrics of an account or table, and marks of deployments."""

from typing import Any, Final

from rest_framework import serializers

from storage.api.serializers.fields import InstantField, QueryParameters, StrictCharField, StrictSerializer
from storage.api.serializers.service import ActorSerializer, DetailField
from storage.domain.requests.observed import Authentication
from storage.operations.counting.reports import POINTS_LIMIT

_PERCENTILE: Final = (
    "Seconds within which {} % of the requests were answered, at most 13 % off; null without requests."
)


class MetricsParameters(QueryParameters):
    since = InstantField(
        default=None, help_text="Start of the range, at most 90 days ago. Default: 24 hours ago."
    )
    until = InstantField(default=None, help_text="End of the range. Default: now.")
    step = serializers.IntegerField(
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


class MarkSerializer(serializers.Serializer[Any]):
    """Of an activity."""

    id = serializers.IntegerField(help_text="Of the entry in the activity log.")
    at = InstantField()
    verb = serializers.CharField(help_text="Such as `deployment.mark` or `policies.set`.")
    actor = ActorSerializer(source="*")
    table = serializers.CharField(source="table_name", help_text="Empty: of the whole account.")
    detail = DetailField()


class TrafficSerializer(serializers.Serializer[Any]):
    requests = serializers.IntegerField()
    ingress = serializers.IntegerField(help_text="Bytes of request bodies.")
    egress = serializers.IntegerField(help_text="Bytes of response bodies.")
    p50 = serializers.FloatField(allow_null=True, help_text=_PERCENTILE.format(50))
    p95 = serializers.FloatField(allow_null=True, help_text=_PERCENTILE.format(95))
    p99 = serializers.FloatField(allow_null=True, help_text=_PERCENTILE.format(99))
    errors = serializers.IntegerField(help_text="Requests that were answered with a status of 400 or more.")


class OperationTrafficSerializer(TrafficSerializer):
    operation = serializers.CharField()


class ErrorCountSerializer(serializers.Serializer[Any]):
    status = serializers.IntegerField()
    code = serializers.CharField()
    requests = serializers.IntegerField()


class MetricsPeriodSerializer(TrafficSerializer):
    at = InstantField(help_text="Its start.")
    observed = serializers.BooleanField(help_text="False: no server ran.")
    operations = serializers.DictField(child=serializers.IntegerField(), help_text="Requests by operation.")
    error_codes = serializers.DictField(child=serializers.IntegerField(), help_text="Errors by code.")
    entities = serializers.IntegerField(
        allow_null=True, help_text="An estimate; null before the first sample."
    )
    size = serializers.IntegerField(allow_null=True, help_text="Bytes on disk.")
    history = serializers.IntegerField(
        allow_null=True, help_text="Bytes on disk of the history; of an account only."
    )


class PartitionTrafficSerializer(serializers.Serializer[Any]):
    table = serializers.CharField()
    partition_key = serializers.CharField(
        help_text="Ends with an ellipsis if it is longer than 128 characters."
    )
    requests = serializers.IntegerField(help_text="At least so many.")


class CredentialTrafficSerializer(serializers.Serializer[Any]):
    authentication = serializers.ChoiceField(choices=[it.value for it in Authentication])
    name = serializers.CharField(
        help_text="`key1` or `key2`, the fingerprint of a SAS token, or the subject of a bearer token."
    )
    requests = serializers.IntegerField(help_text="At least so many.")


class MetricsReportSerializer(serializers.Serializer[Any]):
    since = InstantField()
    until = InstantField()
    step = serializers.IntegerField(help_text="Length of a period in minutes.")
    total = TrafficSerializer()
    periods = MetricsPeriodSerializer(many=True)
    operations = OperationTrafficSerializer(many=True, help_text="The most frequent first.")
    errors = ErrorCountSerializer(many=True, help_text="The most frequent first.")
    partitions = PartitionTrafficSerializer(many=True, help_text="The most requested first.")
    partitions_missed = serializers.IntegerField(
        help_text="By how much the requests of a partition may be too low: few are counted in each period."
    )
    credentials = CredentialTrafficSerializer(many=True, help_text="The most used first.")
    marks = MarkSerializer(many=True, help_text="Changes that may explain a difference, the oldest first.")
