"""Time series of requests and sizes: what processes write, how it is added up, and what reports show of it."""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.access import policies
from storage.access.subject import AccessVerb
from storage.accounts import accounts, removal
from storage.accounts.accounts import NewAccount
from storage.domain.access.actor import SERVER
from storage.domain.access.policies import SignedIdentifier
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.requests.metrics import LATENCY_BOUNDS, Tally
from storage.domain.requests.series import (
    BUCKETS,
    FREQUENT_LIMIT,
    HISTOGRAM_BOUNDS,
    Frequent,
    PeriodCounts,
    SeriesKind,
    Traffic,
    coarsened,
    read_counts,
    write_counts,
)
from storage.domain.values.kinds import AccountKind
from storage.entities import edits
from storage.metrics import reports, series, sizes
from storage.metrics.reports import Range, UnknownRange, choose_range
from storage.metrics.series import KEPT, WHOLE, Series
from storage.metrics.sizes import Size
from storage.metrics.subject import MetricsVerb
from storage.models import RequestSeries, SizeSample
from storage.tables import tables
from storage.tables.subject import TableVerb

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
READ, FAILED = SeriesKind("QueryEntity", 200), SeriesKind("QueryEntity", 403, "AuthenticationFailed")


# the values


def test_the_bounds_of_histograms_are_exact_and_contain_those_of_prometheus():
    assert HISTOGRAM_BOUNDS[:4] == (0.0001, 0.000125, 0.00016, 0.0002)
    assert HISTOGRAM_BOUNDS[-1] == 80
    assert list(HISTOGRAM_BOUNDS) == sorted(HISTOGRAM_BOUNDS)
    assert set(LATENCY_BOUNDS) <= set(HISTOGRAM_BOUNDS)
    places = [HISTOGRAM_BOUNDS.index(bound) for bound in LATENCY_BOUNDS]
    fine = Tally(latencies=[1] * BUCKETS)
    coarse = coarsened(fine).latencies
    assert coarse == [places[0] + 1, *(b - a for a, b in pairwise(places)), BUCKETS - 1 - places[-1]]


@given(st.lists(st.floats(0.0002, 50), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_are_close(seconds, share):
    traffic = Traffic()
    for value in seconds:
        traffic.add(Traffic(1, latencies={bisect_left(HISTOGRAM_BOUNDS, value): 1}))
    rank = share * len(seconds)
    exact = sorted(seconds)[min(int(-(-rank // 1)) - 1, len(seconds) - 1)]
    assert exact / 1.3 <= traffic.percentile(share) <= exact * 1.3


def test_no_requests_have_no_percentile_and_very_slow_ones_the_last_bound():
    assert Traffic().percentile(0.5) is None
    assert Traffic(1, latencies={BUCKETS - 1: 1}).percentile(0.5) == HISTOGRAM_BOUNDS[-1]


@given(st.lists(st.lists(st.integers(0, 80), max_size=300), max_size=8))
def test_the_most_frequent_keys_are_counted_within_their_error(streams):
    summaries = []
    for stream in streams:
        summary = Frequent()
        for key in stream:
            summary.add({str(key): 1})
        summaries.append(summary)
    merged = Frequent()
    for summary in summaries:
        merged.add(summary.counts, summary.missed)
    every = [str(key) for stream in streams for key in stream]
    assert len(merged.counts) <= FREQUENT_LIMIT
    assert merged.missed <= len(every) / (FREQUENT_LIMIT + 1)
    for key in set(every):
        assert 0 <= every.count(key) - merged.counts.get(key, 0) <= merged.missed


def counts(requests=1, kind=READ, partitions=(), credentials=()):
    result = PeriodCounts()
    result.traffic(kind).add(Traffic(requests, 10 * requests, 100 * requests, {3: requests}))
    result.partitions.add(dict(partitions))
    result.credentials.add(dict(credentials))
    return result


def test_counts_are_written_and_read_and_kinds_are_bounded():
    result = counts(3, partitions={"a": 2}, credentials={"sas:ab": 1})
    result.add(counts(2, FAILED))
    assert read_counts(write_counts(result)) == result
    for number in range(300):
        result.add(counts(1, SeriesKind("QueryEntity", 400, f"E{number}")))
    assert (len(result.kinds), result.requests) == (101, 305)


# writes of several processes


@pytest.fixture
def account(db):
    return accounts.add("charted")


@pytest.fixture
def people(account):
    return tables.create(account, "People")


def write(process, minute, account, table="", period_counts=None):
    """Write the counts of an account, and perhaps of a table, as one process does."""
    mine = Series(process)
    mine.add(minute, {(account.pk, name): period_counts or counts() for name in {"", table}})
    mine.write()
    return mine


def read(account, table_id=WHOLE, since=NOON, until=NOON + HOUR, minutes=1):
    [found] = series.read(account.pk, table_id, [since], until, minutes, with_frequent=True)
    return found


def test_sums_up_over_processes_spellings_and_what_they_write_again(account, people):
    mine = write("one", NOON, account, "people", counts(3))
    mine.add(NOON, {(account.pk, ""): counts(1, FAILED), (account.pk, "PEOPLE"): counts(1, FAILED)})
    mine.write()
    mine.write()
    write("two", NOON, account, "people", counts(5))

    for table_id in (WHOLE, people.pk):
        result = read(account, table_id)
        assert {kind: traffic.requests for kind, traffic in result.kinds.items()} == {READ: 8, FAILED: 1}
    assert RequestSeries.objects.filter(account_id=account.pk).count() == 4


def test_names_without_a_table_count_for_the_account_only(account):
    cosmos = accounts.add("spelled", NewAccount(kind=AccountKind.COSMOS))
    both = [tables.create(cosmos, name) for name in ("Items", "items")]
    for number, name in enumerate(("nothing", "a\0b", "a\ud800", "a" * 300)):
        write(str(number), NOON, account, name)
    for name, number in (("Items", 1), ("items", 2), ("ITEMS", 4)):
        write(f"of {number}", NOON, cosmos, name, counts(number))

    assert read(account).requests == 4
    assert [read(cosmos, table.pk).requests for table in both] == [1, 2]
    assert read(cosmos).requests == 7
    assert not RequestSeries.objects.exclude(account_id__in=[0, account.pk, cosmos.pk]).exists()


def test_a_process_counts_a_thousand_tables_in_a_minute(account):
    mine = Series("one")
    mine.add(NOON, {(account.pk, ""): counts(1200), **{(account.pk, f"t{n}"): counts() for n in range(1200)}})
    assert len(mine._counted) == 1002  # with the account and the mark that a server ran


def test_adds_up_without_counting_anything_twice(account, people):
    start = NOON - 3 * HOUR
    for number in range(0, 150, 5):
        for process in ("one", "two"):
            write(
                process,
                start + number * MINUTE,
                account,
                "people",
                counts(partitions={"a": 1, f"b{number}": 1}),
            )
    late = write("three", start + 8 * MINUTE, account, "people")
    expected = 61
    for now in (NOON - HOUR, NOON, NOON):
        for table_id in (WHOLE, people.pk):
            for minutes in KEPT:
                assert read(account, table_id, start - HOUR, NOON, minutes).requests == expected, (
                    now,
                    minutes,
                )
        series.tidy(now)
    quarters = [start + number * 15 * MINUTE for number in range(10)]
    result = series.read(account.pk, people.pk, quarters, NOON, 15, with_frequent=True)
    assert [it.requests for it in result] == [7, *[6] * 9]
    assert result[0].partitions.counts == {"a": 6, "b0": 2, "b5": 2, "b10": 2}
    # a process that was suspended writes once more what was added up: it counts besides, and is added
    late.add(start + 8 * MINUTE, {(account.pk, ""): counts()})
    late.write()
    series.tidy(NOON)
    assert not RequestSeries.objects.exclude(process="").filter(period__lt=NOON - HOUR).exists()


@pytest.mark.parametrize("is_added_up", [False, True])
def test_a_span_is_counted_to_the_shortest_periods_that_are_kept(account, people, is_added_up):
    """One request in each minute of the hour before noon, and one five days before."""
    for number in range(60):
        write("one", NOON - HOUR + number * MINUTE, account, "people")
    write("one", NOON - 5 * DAY, account)
    if is_added_up:
        series.tidy(NOON + 20 * MINUTE)
    for since, until in (
        (0, 60),
        (0.5, 60),
        (7, 53),
        (15, 30),
        (16, 20),
        (14, 31),
        (29.5, 45.5),
        (59, 61),
        (70, 80),
    ):
        expected = sum(since <= number < until for number in range(60))
        start, end = NOON + (since - 60) * MINUTE, NOON + (until - 60) * MINUTE
        assert series.read_span(account.pk, start, end, NOON).requests == expected, (since, until)
    assert series.read_span(account.pk, NOON - 5 * DAY, NOON + HOUR, NOON).requests == 61
    assert series.read_span(account.pk, NOON - 5 * DAY + MINUTE, NOON, NOON).requests == 60
    assert series.read_span(account.pk, NOON - 60 * DAY, NOON, NOON).requests == 61


def test_deletes_what_is_old_and_of_tables_what_is_too_much(account, people, monkeypatch):
    for age in (DAY / 2, 2 * DAY, 9 * DAY, 91 * DAY):
        write("one", series.start_of(NOON - age, 120), account, "people")
    series.tidy(NOON)
    mine = RequestSeries.objects.filter(account_id=account.pk, table_id=people.pk)
    assert sorted(mine.values_list("minutes", flat=True)) == [1, 15, 15, 120, 120, 120]

    monkeypatch.setattr(series, "_ROWS_LIMIT", RequestSeries.objects.count() - 2)
    series.tidy(NOON)
    assert sorted(mine.values_list("minutes", flat=True)) == [15, 120, 120, 120]
    removal.remove("charted", with_tables=True)
    assert not RequestSeries.objects.filter(account_id=account.pk).exists()


# sizes


def test_sizes_are_sampled_when_they_change_and_thinned_later(account, people):
    def samples(table_id):
        return SizeSample.objects.filter(account_id=account.pk, table_id=table_id)

    sizes.sample(NOON)
    edits.apply_one(people, Insert(Entity(EntityKey("a", "b"), {})), by=SERVER)
    sizes.sample(NOON + HOUR)
    sizes.sample(NOON + 2 * HOUR)
    assert (samples(WHOLE).count(), samples(people.pk).count()) == (2, 2)

    places = [NOON - HOUR, NOON, NOON + HOUR, NOON + 2 * HOUR]
    of_table = sizes.read((account.pk, people.pk), places, NOON + 3 * HOUR)
    assert of_table[0] is None
    assert of_table[1].size < of_table[2].size == of_table[3].size
    assert sizes.read((account.pk, WHOLE), [NOON + 5 * HOUR], NOON + 6 * HOUR)[0].history > 0

    for age in range(5):
        SizeSample.objects.create(
            account=account,
            table_id=people.pk,
            at=NOON - 20 * DAY + age * HOUR,
            entities=age,
            size=1,
            history=0,
        )
    SizeSample.objects.create(
        account=account, table_id=people.pk, at=NOON - 95 * DAY, entities=9, size=1, history=0
    )
    SizeSample.objects.create(
        account=account, table_id=people.pk, at=NOON - 96 * DAY, entities=8, size=1, history=0
    )
    sizes.tidy(NOON)
    assert list(samples(people.pk).filter(at__lt=NOON).order_by("at").values_list("entities", flat=True)) == [
        9,
        4,
    ]
    [known] = sizes.read((account.pk, people.pk), [NOON - 90 * DAY], NOON - 89 * DAY)
    assert known == Size(9, 1, 0)


# reports


@pytest.mark.parametrize(
    ("length", "step", "stored"),
    [
        (HOUR, 1, 1),
        (6 * HOUR, 5, 1),
        (DAY, 15, 15),
        (7 * DAY, 120, 120),
        (30 * DAY, 480, 120),
        (90 * DAY, 1440, 120),
    ],
)
def test_ranges_have_steps_for_a_chart(length, step, stored):
    now = NOON + timedelta(minutes=7, seconds=3)
    result = choose_range(now - length, now, now)
    assert (result.step, result.stored) == (step, stored)
    assert result.since <= now - length < result.since + timedelta(minutes=step)
    assert result.until - timedelta(minutes=step) < now <= result.until
    assert 60 <= len(result.periods) <= 101


def test_ranges_of_the_past_have_what_is_kept():
    assert choose_range(NOON - 2 * DAY, NOON - 2 * DAY + HOUR, NOON).step == 15
    assert choose_range(NOON - 20 * DAY, NOON - 19 * DAY, NOON).step == 120
    assert choose_range(NOON - DAY, NOON + DAY, NOON, 1).step == 1
    for since, until, step in (
        (NOON, NOON, None),
        (NOON + HOUR, NOON + DAY, None),
        (NOON - 92 * DAY, NOON, None),
        (NOON - 2 * DAY, NOON, 1),
        (NOON - 9 * DAY, NOON, 30),
    ):
        with pytest.raises(UnknownRange):
            choose_range(since, until, NOON, step)


def test_a_report_has_counts_gaps_and_what_changed(account, people):
    other = tables.create(account, "Other")
    now = datetime.now(UTC) + 5 * MINUTE  # after the requests of this test
    chosen = choose_range(now - HOUR, now, now)
    write("one", series.start_of(now - 30 * MINUTE, 1), account, "people", counts(3))
    policies.replace(other, [SignedIdentifier("reader")], by=SERVER)
    reports.mark_deployment(account, "v2", by=SERVER)

    report = reports.report(account, people, chosen)
    assert report.total.requests == 3
    assert sum(report.observed) == 2  # also now, as a server answers
    assert [mark.verb for mark in report.marks] == [TableVerb.CREATE, MetricsVerb.DEPLOYMENT_MARK]
    assert AccessVerb.POLICIES_SET in {mark.verb for mark in reports.report(account, None, chosen).marks}
    assert reports.total_before(account, people, chosen, now).requests == 0
    assert reports.total_before(account, None, Range(now - 60 * DAY, now, 1440, 120), now) is None
