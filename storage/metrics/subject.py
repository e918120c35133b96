"""Declaration of the subject "metrics": see storage.core.registry."""

from datetime import timedelta

from storage.core.notices import Condition, NoticeKind, Severity, Threshold, Unit
from storage.core.subject import Page, Periodic, Place, Section, StyleSheet, Subject
from storage.core.verbs import Act, Group, Verb
from storage.domain.translation import mark as _


class MetricsVerb(Verb):
    # a client's deployment, as a mark in metrics
    DEPLOYMENT_MARK = Act(
        "deployment.mark",
        Group.SETTINGS,
        "rocket",
        _("%(who)s deployed %(deployment)s"),
        is_marked=True,
    )


class MetricsNotice(NoticeKind):
    ERRORS_HIGH = Condition(
        "errors.high",
        _("Many requests fail"),
        _(
            "%(share)s %% of the requests of the last %(minutes)s minutes failed or were refused: %(errors)s of "
            "%(requests)s."
        ),
        Severity.ERROR,
        "a/{account}/requests/",
        "storage.metrics.conditions.find_many_errors",
        query="?span=hour&kind=problem",
        threshold=Threshold(Unit.PERCENT, 10, 1, 100),
        calm=timedelta(minutes=10),
    )
    LATENCY_HIGH = Condition(
        "latency.high",
        _("Slow requests"),
        _(
            "The slowest 5 %% of the requests of the last %(minutes)s minutes took more than %(milliseconds)s ms."
        ),
        Severity.WARNING,
        "a/{account}/requests/",
        "storage.metrics.conditions.find_slow_requests",
        query="?span=hour&kind=slow",
        threshold=Threshold(Unit.MILLISECONDS, 2000, 1, 60_000),
        calm=timedelta(minutes=10),
    )


SUBJECT = Subject(
    name="metrics",
    stands_on=("activity",),
    api="storage.metrics.api",
    verbs=MetricsVerb,
    notices=MetricsNotice,
    periodic=(
        Periodic(
            "sizes",
            "storage.metrics.sizes.sample",
            900.0,
            "Sizes could not be sampled",
            looks_every=60.0,
            late_after=timedelta(hours=1),
        ),
    ),
    tidying={
        "queries": "storage.metrics.query_shapes.tidy",
        "series": "storage.metrics.series.tidy",
        "sizes": "storage.metrics.sizes.tidy",
        "usage": "storage.metrics.usage.tidy",
    },
    pages=(
        Page(
            Place.ACCOUNT,
            110,
            "metrics:account",
            _("Metrics"),
            "chart-line",
            section=Section.TRAFFIC,
            letter="M",
        ),
        Page(Place.TABLE, 40, "metrics:table", _("Metrics"), "chart-line"),
    ),
    style_sheet=StyleSheet.ACCESS,
    urls=("console.metrics.urls",),
)
