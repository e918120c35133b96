"""Rehearsals, their requests and sets of rules as the management API shows and reads them."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from storage.core.rehearsals import ExchangedChange
from storage.domain.refusals import Refused
from storage.rehearsal import rehearsals
from storage.rehearsal.findings import FindingKind, Severity
from storage.rehearsal.rules import RULES_LIMIT, dump_rules
from storage.rehearsal.sets import READY, RuleSet
from storage.rehearsal.summaries import RehearsalSummary
from storage.rest.answers import TypedSerializer
from storage.rest.fields import (
    OptionalCharField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
    StrictSerializer,
)
from storage.rest.paging import PageParameters

_RULES = "What is done to which requests: see the documentation of rehearsals."


class DurationField(StrictCharField):
    """Duration such as `90s`, `10m` or `2h`."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return rehearsals.read_duration(super().to_internal_value(data))
        except Refused as refused:
            raise ValidationError(str(refused)) from None


class RulesField(serializers.ListField):
    """Rules in their form of JSON, which storage.rehearsal.rules reads."""

    child = serializers.DictField()

    def __init__(self, **options: Any) -> None:
        super().__init__(min_length=1, max_length=RULES_LIMIT, **{"help_text": _RULES, **options})


class NewRehearsalSerializer(StrictSerializer):
    set = OptionalCharField(
        max_length=64,
        help_text=f"`{'`, `'.join(READY)}`, or a set of the account's own. With `rules`, a name for them.",
    )
    rules = RulesField(required=False, help_text="Instead of those of a set.")
    table = OptionalCharField(
        max_length=255, help_text="Only requests to this table; by default all of the account."
    )
    seed = StrictIntegerField(
        min_value=0,
        max_value=rehearsals.MOST_SEED,
        required=False,
        help_text="The same seed, rules and requests of a client give the same failures; by default a random one.",
    )
    scale = StrictFloatField(
        min_value=rehearsals.LEAST_SCALE,
        max_value=rehearsals.MOST_SCALE,
        default=1.0,
        help_text="Factor of the rates at which rules begin to throttle.",
    )
    duration = DurationField(
        default=rehearsals.DURATION, help_text="When it ends by itself: `90s`, `10m`, `2h`; at most 24 hours."
    )

    def validate_duration(self, duration: timedelta) -> timedelta:
        if not rehearsals.SHORTEST <= duration <= rehearsals.LONGEST:
            raise ValidationError("A rehearsal takes 1 second to 24 hours.")
        return duration

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs["set"] and "rules" not in attrs:
            raise ValidationError({"set": ["Send the name of a set, or rules."]})
        return attrs


class RehearsalSerializer(TypedSerializer):
    of = RehearsalSummary
    names = (
        *("id", "set", "rules", "seed", "scale", "table"),
        *("started_at", "ends_at", "stopped_at", "state", "requests", "faulted"),
    )
    help = {
        "set": "The name of its rules.",
        "table": "Empty: the whole account.",
        "ends_at": "When it ends by itself.",
        "stopped_at": "When it was stopped before its end.",
        "requests": "Requests so far.",
        "faulted": "Those among them that a rule has struck with more than a delay.",
    }
    rules = RulesField()
    state: Literal["running", "ended"]


class RehearsedRequestParameters(PageParameters):
    agent = serializers.CharField(default="", max_length=256, help_text="A part of the user agent.")
    faulted = serializers.BooleanField(
        default=None, allow_null=True, help_text="Only those that a rule has struck, or only the others."
    )


class ExchangedChangeSerializer(TypedSerializer):
    of = ExchangedChange
    names = ("verb", "table", "partition_key", "row_key", "condition")
    help = {
        "verb": "`insert`, `replace`, `merge`, `delete`, `insert_or_replace` or `insert_or_merge`.",
        "condition": "`If-Match`.",
    }
    partition_key: Annotated[str, {"source": "partition"}]
    row_key: Annotated[str, {"source": "row"}]


class RehearsedExchangeSerializer(TypedSerializer):
    id: int
    request_id: Annotated[UUID, "`x-ms-request-id` of the answer."]
    at: datetime
    seconds: float
    number: Annotated[int, "Position among the requests of its client, from 1."]
    agent: str
    credential: Annotated[str, "Its kind and name, such as `authenticated:key1`."]
    operation: Annotated[str, {"source": "exchange.operation"}]
    method: Annotated[str, {"source": "exchange.method"}]
    table: Annotated[str, {"source": "exchange.table"}]
    partition_key: Annotated[str | None, {"source": "exchange.partition"}]
    row_key: Annotated[str | None, {"source": "exchange.row"}]
    secondary: Annotated[bool, {"source": "exchange.secondary"}, "Whether it came by the secondary address."]
    changes: Annotated[list[ExchangedChangeSerializer], {"source": "exchange.changes"}]
    top: Annotated[int | None, {"source": "exchange.top"}]
    token: Annotated[
        str,
        {"source": "exchange.token"},
        "Digest of the continuation token that was sent; empty without one.",
    ]
    next_token: Annotated[
        str, {"source": "exchange.next_token"}, "Digest of the one that was answered; empty without one."
    ]
    entities: Annotated[int | None, {"source": "exchange.entities"}, "Number of entities in the answer."]
    status: Annotated[int, {"source": "exchange.status"}, "0 if the client closed the connection before."]
    error: Annotated[str, {"source": "exchange.error"}]
    retry_after: Annotated[float | None, {"source": "exchange.retry_after"}, "Seconds, as answered."]
    rules: Annotated[list[str], {"source": "exchange.rules"}, "Names of the rules that struck."]
    delivery: Annotated[
        str,
        {"source": "exchange.delivery"},
        "Empty, or how the answer did not arrive whole: `close`, `reset`, `silence`, `cut`, `slow`.",
    ]
    lag: Annotated[float, {"source": "exchange.lag"}, "Seconds by which the secondary was behind."]
    applied: Annotated[
        bool | None, {"source": "exchange.applied"}, "Whether a write was committed; null for reads."
    ]
    warnings: Annotated[list[str], {"source": "exchange.warnings"}, "Rules of Azure that it broke."]


class FindingSerializer(TypedSerializer):
    kind: FindingKind
    severity: Annotated[Severity, "A `fault` is an error of the client; a `note` is good to know."]
    text: Annotated[str, "A sentence: what was sent, what came back, what came next."]
    remedy: Annotated[str, "What the client can do; may be empty."]
    count: Annotated[int, "How many times it was seen."]
    requests: Annotated[list[str], "`x-ms-request-id` of requests that show it, at most ten, in order."]


class ClientReportSerializer(TypedSerializer):
    agent: str
    credential: Annotated[str, "Its kind and name, such as `authenticated:key1`."]
    requests: int
    faulted: int
    findings: list[FindingSerializer]


class AgentFindingSerializer(TypedSerializer):
    agent: str
    kind: FindingKind


class ComparisonSerializer(TypedSerializer):
    id: Annotated[int, "Of the rehearsal before."]
    new: list[AgentFindingSerializer]
    gone: list[AgentFindingSerializer]
    kept: list[AgentFindingSerializer]


class ReportedRehearsalSerializer(TypedSerializer):
    of = RehearsalSummary
    names = tuple(name for name in RehearsalSerializer.names if name != "rules")
    state: Literal["running", "ended"]


class ReportSerializer(TypedSerializer):
    # JSON of storage.rehearsal.report.dump_report

    rehearsal: ReportedRehearsalSerializer
    held: Annotated[bool, "Whether there were requests, and no finding is a fault."]
    badge: Annotated[str, "A text that says so, once the rehearsal has ended; else empty."]
    requests: int
    faulted: Annotated[int, "Requests that a rule has struck with more than a delay."]
    is_final: Annotated[bool, "Whether the rehearsal has ended."]
    clients: list[ClientReportSerializer]
    compared_with: Annotated[
        ComparisonSerializer | None, "The rehearsal before, of the same set and table; null for the first."
    ]


class RuleSetSerializer(TypedSerializer):
    name: str
    description: Annotated[str, {"source": "text"}]
    is_ready: Annotated[bool, "Whether every account has it; it cannot be changed."]
    rules = serializers.SerializerMethodField(help_text=_RULES)

    def get_is_ready(self, one: RuleSet) -> bool:
        return one.name in READY

    def get_rules(self, one: RuleSet) -> list[dict[str, Any]]:
        return dump_rules(one.rules)


class RuleSetChangeSerializer(StrictSerializer):
    description = OptionalCharField(max_length=2000)
    rules = RulesField()
