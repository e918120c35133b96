"""Requests are counted once, in the series, which know the number of all requests of a row.

What was counted before there were series, up to 0.4, is copied into them. Older servers that still run write and read
the tables storage_requestcount and storage_tablerequests, which stay for them as they are. They write the series, too,
so that nothing they count is lost. A migration may drop both tables in a version with a greater WRITER: see
storage.health.database_version.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from django.db import migrations, models
from django.db.models import Min, Q
from django.utils import timezone

FUNCTION: Final = """
-- The number of requests in the counts of a row of series.
CREATE FUNCTION series_requests(counts jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(sum((kind ->> 3)::bigint), 0)::bigint FROM jsonb_array_elements(counts -> 0) AS kind
$$
"""

SERVER: Final = 0  # the account of counts that say that a server ran
WHOLE: Final = 0  # the table of counts of an account
KEY: Final = ("account", "table_id", "minutes", "period", "process")
HOUR: Final = timedelta(hours=1)
# for how long the periods longer than a minute are kept, by their length in minutes
LONGER: Final = {15: timedelta(days=8), 120: timedelta(days=90)}
# the buckets of series with the same upper bounds as those of the counts, which are 1, 2 and 5 ms and so on to 5 s
BUCKET_OF: Final = (10, 13, 17, 20, 23, 27, 30, 33, 37, 40, 43, 47, 60)
KINDS_LIMIT: Final = 100  # of a row of series

Kind = tuple[str, int, str]  # operation, status and error
REST: Final[Kind] = ("", 0, "")  # the kind of requests beyond the limit


@dataclass(slots=True)
class Traffic:
    """Requests, their bytes in and out, and the numbers of their latencies by bucket of series."""

    requests: int = 0
    ingress: int = 0
    egress: int = 0
    latencies: dict[int, int] = field(default_factory=dict)

    def add(self, other: "Traffic") -> None:
        self.requests += other.requests
        self.ingress += other.ingress
        self.egress += other.egress
        for bucket, number in other.latencies.items():
            self.latencies[bucket] = self.latencies.get(bucket, 0) + number


@dataclass(slots=True)
class PeriodCounts:
    """The counts of a row of series; ``frequent`` is what it says of partitions and credentials."""

    kinds: dict[Kind, Traffic] = field(default_factory=dict)
    frequent: list[Any] = field(default_factory=lambda: [[{}, 0], [{}, 0]])

    def add(self, kind: Kind, traffic: Traffic) -> None:
        if kind not in self.kinds and len(self.kinds) >= KINDS_LIMIT:
            kind = REST
        self.kinds.setdefault(kind, Traffic()).add(traffic)

    def add_written(self, written: Sequence[Any]) -> None:
        """Add the counts of a row, whose frequent partitions and credentials the copied ones do not have."""
        kinds, *self.frequent = written
        for operation, status, error, requests, ingress, egress, latencies in kinds:
            numbers = dict(zip(latencies[::2], latencies[1::2], strict=True))
            self.add((operation, status, error), Traffic(requests, ingress, egress, numbers))

    def write(self) -> list[Any]:
        kinds = [
            [
                *kind,
                traffic.requests,
                traffic.ingress,
                traffic.egress,
                [number for item in sorted(traffic.latencies.items()) for number in item],
            ]
            for kind, traffic in self.kinds.items()
        ]
        return [kinds, *self.frequent]


class Copy:
    """The counts that are copied into the series."""

    def __init__(self, apps: Any) -> None:
        self._apps = apps
        self._series = apps.get_model("storage", "RequestSeries")
        self._now = timezone.now()
        self._periods: set[tuple[int, datetime]] = set()

    def run(self) -> None:
        began = self._began()
        counted = self._apps.get_model("storage", "RequestCount").objects.order_by("account_id")
        known = self._apps.get_model("storage", "TableRequests").objects.order_by("table_id")
        if began is not None:
            # of an hour that the series began in, only minutes are known not to be in them
            counted = counted.filter(Q(minutes=1, period__lt=began) | Q(period__lte=began - HOUR))
            known = known.filter(hour__lte=began - HOUR)
        # minutes are kept for a day, and say more than the hours they are added up in
        first = counted.filter(minutes=1).aggregate(first=Min("period"))["first"] or self._now
        whole = start_of(first + HOUR - timedelta(minutes=1), 60)
        is_new = Q(minutes=1) & ~Q(process="")
        counted = counted.filter(
            Q(minutes=1, period__gte=whole) | Q(period__lt=whole) & (Q(minutes=60) | is_new)
        )
        for account_id, rows in groupby(counted.iterator(), key=lambda row: row.account_id):
            self._store(
                (account_id, WHOLE),
                ((row.minutes, row.period, kind_of(row), traffic_of(row)) for row in rows),
            )
        accounts = dict(self._apps.get_model("storage", "Table").objects.values_list("pk", "account_id"))
        for table_id, rows in groupby(known.iterator(), key=lambda row: row.table_id):
            if table_id in accounts:
                # which kinds of requests, was not counted
                counts = ((60, row.hour, REST, Traffic(row.requests)) for row in rows)
                self._store((accounts[table_id], table_id), counts)
        self._series.objects.bulk_create(
            [self._row((SERVER, WHOLE), *period, PeriodCounts()) for period in sorted(self._periods)],
            batch_size=1000,
            ignore_conflicts=True,
        )

    def _began(self) -> datetime | None:
        """Return when the first server began to write series, to the length of the shortest periods that reach back."""
        servers = self._series.objects.filter(account_id=SERVER)
        firsts = sorted(
            first
            for _, first in servers.values_list("minutes").annotate(first=Min("period")).order_by("first")
        )
        return max((it for it in firsts if it < firsts[0] + timedelta(hours=2)), default=None)

    def _store(self, place: tuple[int, int], counts: Iterable[tuple[int, datetime, Kind, Traffic]]) -> None:
        """Add the counts of an account or table; those of an hour to the first of its quarters."""
        totals: defaultdict[tuple[int, datetime], PeriodCounts] = defaultdict(PeriodCounts)
        for minutes, period, kind, traffic in counts:
            if minutes == 1:
                totals[1, period].add(kind, traffic)
            for length, kept in LONGER.items():
                if period >= self._now - kept:
                    totals[length, start_of(period, length)].add(kind, traffic)
        account_id, table_id = place
        before = self._series.objects.filter(
            account_id=account_id, table_id=table_id, process="", period__in={period for _, period in totals}
        )
        for row in before:
            if (row.minutes, row.period) in totals:
                totals[row.minutes, row.period].add_written(row.counts)
        self._periods |= totals.keys()
        self._series.objects.bulk_create(
            [self._row(place, *period, counts) for period, counts in totals.items()],
            batch_size=1000,
            update_conflicts=True,
            unique_fields=KEY,
            update_fields=("counts",),
        )

    def _row(self, place: tuple[int, int], minutes: int, period: datetime, counts: PeriodCounts) -> Any:
        account_id, table_id = place
        return self._series(
            account_id=account_id,
            table_id=table_id,
            minutes=minutes,
            period=period,
            process="",
            counts=counts.write(),
        )


def start_of(moment: datetime, minutes: int) -> datetime:
    """Return the start of the period that a moment is in."""
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    length = timedelta(minutes=minutes)
    return midnight + (moment - midnight) // length * length


def kind_of(row: Any) -> Kind:
    return (row.operation, row.status, row.error)


def traffic_of(row: Any) -> Traffic:
    latencies = {bucket: number for bucket, number in zip(BUCKET_OF, row.latencies, strict=False) if number}
    return Traffic(row.requests, row.ingress, row.egress, latencies)


def copy_counts(apps: Any, schema_editor: Any) -> None:
    Copy(apps).run()


class Migration(migrations.Migration):
    dependencies = [("storage", "0056_no_metrics_tables")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION series_requests"),
        migrations.AddField(
            "requestseries",
            "requests",
            models.GeneratedField(
                db_persist=True,
                expression=models.Func(models.F("counts"), function="series_requests"),
                output_field=models.BigIntegerField(),
            ),
        ),
        migrations.AddIndex(
            "requestseries",
            models.Index(
                condition=models.Q(("minutes", 1), models.Q(("process", ""), _negated=True)),
                fields=["account", "table_id", "period"],
                name="new_series_rows",
            ),
        ),
        migrations.RunPython(copy_counts, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel("RequestCount"), migrations.DeleteModel("TableRequests")]
        ),
    ]
