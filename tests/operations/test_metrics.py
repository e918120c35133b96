"""Counts of requests, as several processes write them and anybody reads them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Sum

from storage.accounts import accounts
from storage.domain.access.grants import Operation
from storage.domain.requests.metrics import RequestKind, Tally
from storage.domain.requests.observed import Authentication
from storage.metrics import metrics
from storage.metrics.metrics import HOUR, MINUTE, Counts
from storage.models import RequestCount

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def account(db):
    return accounts.add("counted").pk


def kind(account, status=200, *, operation=Operation.QUERY_ENTITY, secondary=False):
    return RequestKind(account, secondary, operation, Authentication.KEY, status, "")


def tally(requests=1):
    return Tally(requests, 2 * requests, 3 * requests, 0.5 * requests, 1.0 * requests, [requests] + [0] * 12)


def wrote(process, minute, counted):
    """A process that has counted this, and written it."""
    counts = Counts(process)
    counts.add(minute, counted)
    counts.write()
    return counts


def read(account, since=NOON, until=NOON + HOUR, **options):
    found = metrics.counts(account, since, until, **options)
    return [(count.period, count.kind, count.tally) for count in found]


def test_reads_what_was_written(account):
    counted = {kind(account): tally(3), kind(account, 404, operation=None, secondary=True): tally(1)}

    wrote("one", NOON, counted)

    assert sorted(read(account), key=str) == sorted(((NOON, k, t) for k, t in counted.items()), key=str)
    assert read(account, NOON + MINUTE) == read(account, until=NOON) == []


def test_sums_up_over_processes_and_what_they_write_again(account):
    counts = wrote("one", NOON, {kind(account): tally(3)})
    counts.add(NOON, {kind(account): tally(4)})
    counts.write()
    counts.add(NOON, {kind(account): Tally()})
    counts.write()
    counts.write()
    wrote("two", NOON, {kind(account): tally(5)})
    wrote("two", NOON, {kind(0): tally(1)})  # an account that does not exist

    assert read(account) == [(NOON, kind(account), tally(12))]
    assert RequestCount.objects.count() == 2


def test_keeps_what_could_not_be_written_for_a_while(account):
    counts = Counts("one")
    counts.add(NOON, {kind(account): tally(3)})
    counts.forget(NOON + timedelta(minutes=29))
    counts.write()
    assert read(account) == [(NOON, kind(account), tally(3))]

    counts.add(NOON + HOUR, {kind(account): tally(5)})
    counts.forget(NOON + HOUR + timedelta(minutes=31))
    counts.write()
    assert read(account, NOON + HOUR, NOON + 2 * HOUR) == []


def test_counts_each_request_once_whether_its_hour_is_summed_up_or_not(account):
    def by_hour():
        found = metrics.hour_counts([account], NOON).values_list("hour").annotate(Sum("requests"))
        return dict(found)

    wrote("one", NOON, {kind(account): tally(3)})
    wrote("one", NOON + 2 * HOUR, {kind(account): tally(5)})
    wrote("one", NOON - MINUTE, {kind(account): tally(9)})
    assert by_hour() == {NOON: 3, NOON + 2 * HOUR: 5}

    metrics.tidy(NOON + 2 * HOUR)
    wrote("late", NOON, {kind(account): tally(1)})
    assert by_hour() == {NOON: 4, NOON + 2 * HOUR: 5}
    assert metrics.hour_counts([account + 1], NOON).count() == 0


# tidying


def test_makes_one_row_of_those_of_several_processes(account):
    for process in ("one", "two", "three"):
        wrote(process, NOON, {kind(account): tally(1)})
        wrote(process, NOON + MINUTE, {kind(account): tally(2)})
    before = [(NOON, kind(account), tally(3)), (NOON + MINUTE, kind(account), tally(6))]
    assert read(account) == before

    metrics.tidy(NOON + 2 * HOUR)
    metrics.tidy(NOON + 2 * HOUR)

    assert read(account) == before
    assert read(account, length=HOUR) == [(NOON, kind(account), tally(9))]
    assert RequestCount.objects.count() == 3
    # more comes after all
    wrote("two", NOON, {kind(account): tally(2)})
    metrics.tidy(NOON + 2 * HOUR)

    assert read(account, length=HOUR) == [(NOON, kind(account), tally(11))]


def test_leaves_alone_an_hour_that_somebody_may_still_write_into(account):
    wrote("one", NOON + 59 * MINUTE, {kind(account): tally(1)})

    metrics.tidy(NOON + HOUR + 31 * MINUTE)

    assert RequestCount.objects.get().process == "one"


def test_drops_minutes_after_a_day_and_hours_after_a_month(account):
    wrote("one", NOON, {kind(account): tally(1)})

    metrics.tidy(NOON + DAY)
    assert len(read(account)) == len(read(account, length=HOUR)) == 1
    metrics.tidy(NOON + DAY + 2 * HOUR)
    assert (len(read(account)), len(read(account, length=HOUR))) == (0, 1)
    metrics.tidy(NOON + 32 * DAY)
    assert not RequestCount.objects.exists()
