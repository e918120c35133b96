"""Counts of requests that servers up to 0.4 have stored: an upgrade copies what is not in the series."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from storage.accounts import accounts
from storage.domain.requests.series import HISTOGRAM_BOUNDS, PeriodCounts, SeriesKind, Traffic, write_counts
from storage.metrics import series, table_use
from storage.metrics.last_day import last_day
from storage.metrics.series import DAY, HOUR, MINUTE, SERVER, WHOLE, Series, start_of
from storage.models import RequestSeries
from storage.sql.django import execute, fetch
from storage.tables import tables

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

READ, REFUSED = SeriesKind("QueryEntities", 200), SeriesKind("InsertEntity", 409, "EntityAlreadyExists")


@contextmanager
def before_the_upgrade():
    """Have the schema before the migration, and then what it makes of it."""
    executor = MigrationExecutor(connection)
    try:
        executor.migrate([("storage", "0056_no_metrics_tables")])
        yield
    finally:
        with transaction.atomic():
            executor = MigrationExecutor(connection)
            executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.fixture
def account(db):
    yield accounts.add("counted")
    execute("TRUNCATE storage_requestcount, storage_tablerequests")  # no model uses these tables any more


@pytest.fixture
def people(account):
    return tables.create(account, "People")


@pytest.fixture
def now():
    """Half past an even hour, a moment ago."""
    return start_of(timezone.now(), 120) - 90 * MINUTE


def count(account, minutes, period, requests, kind=READ, process="", authentication="key"):
    """Store a count as servers up to 1.0 do."""
    latencies = [requests, *[0] * 11, 0]
    execute(
        "INSERT INTO storage_requestcount (account_id, process, minutes, period, secondary, operation, authentication,"
        " status, error, requests, ingress, egress, server_time, total_time, latencies)"
        " VALUES (%s, %s, %s, %s, false, %s, %s, %s, %s, %s, %s, %s, 0, 0, %s::jsonb)",
        *(account.pk, process, minutes, period, kind.operation, authentication, kind.status, kind.error),
        *(requests, 2 * requests, 3 * requests, str(latencies)),
    )


def count_for_table(table, hour, requests):
    execute(
        "INSERT INTO storage_tablerequests (table_id, hour, requests) VALUES (%s, %s, %s)",
        *(table.pk, hour, requests),
    )


def begin_series(account, moment, requests, minutes=1):
    """Store what the first server with series did: in the minute in which it began, or as added up since."""
    counts = PeriodCounts()
    counts.traffic(READ).add(Traffic(requests))
    for account_id, written in ((SERVER, PeriodCounts()), (account.pk, counts)):
        execute(
            "INSERT INTO storage_requestseries (account_id, table_id, minutes, period, process, counts)"
            " VALUES (%s, 0, %s, %s, '', %s::jsonb)",
            *(account_id, minutes, moment, str(write_counts(written)).replace("'", '"')),
        )


def requests_of(account, table_id, since, until, minutes):
    [found] = series.read(account.pk, table_id, [since], until, minutes)
    return found.requests


def test_all_is_copied_where_there_are_no_series(account, people, now):
    hour = start_of(now, 60)
    with before_the_upgrade():
        # two processes, not yet in an hour
        count(account, 1, now, 1, process="one")
        count(account, 1, now, 2, process="two", authentication="sas")
        # requests of an hour added up, and those of its minutes; the minutes are read
        count(account, 1, hour - 60 * MINUTE, 3)
        count(account, 1, hour - 10 * MINUTE, 4, REFUSED)
        count(account, 60, hour - HOUR, 3)
        count(account, 60, hour - HOUR, 4, REFUSED)
        # hours whose minutes are gone
        count(account, 60, hour - 30 * HOUR, 5)
        count(account, 60, hour - 20 * DAY, 6, REFUSED)
        count_for_table(people, hour - HOUR, 7)

    assert requests_of(account, WHOLE, hour - 21 * DAY, now + HOUR, 120) == 21
    assert requests_of(account, WHOLE, hour - 2 * DAY, now + HOUR, 15) == 15
    assert requests_of(account, WHOLE, hour - DAY, now + HOUR, 1) == 10
    day = last_day(account.pk, now)
    assert ([it.requests for it in day.hours[-2:]], day.refused) == ([7, 3], 4)
    assert day.errors == [("EntityAlreadyExists", 4)]
    assert day.counts.kinds[READ] == Traffic(6, 12, 18, {HISTOGRAM_BOUNDS.index(0.001): 6})
    assert table_use.last_day([people], now)[people.pk][-2:] == (7, 0)
    assert requests_of(account, people.pk, hour - DAY, now, 120) == 7
    ran = series.observed_periods([hour - 20 * DAY, hour - 19 * DAY], hour - 18 * DAY, 120)
    assert ran == [True, False]


@pytest.mark.parametrize("ago", [timedelta(), 3 * DAY, 20 * DAY])
def test_requests_in_the_series_are_not_counted_twice(account, people, now, ago):
    """The series began a moment, days or weeks ago, and their shorter periods are gone."""
    began = start_of(now - ago, 120) + 61 * MINUTE
    hour = start_of(began, 60)
    reaching = [1, 15, 120][:3] if ago < DAY else [15, 120] if ago < 8 * DAY else [120]
    with before_the_upgrade():
        for minutes in reaching:
            begin_series(account, start_of(began, minutes), 10, minutes)
        count(account, 60, hour - 2 * HOUR, 2)  # before
        count(account, 60, hour, 10)  # while they began
        count(account, 60, hour + HOUR, 100)  # since
        if ago < DAY:
            count(account, 1, began - MINUTE, 1)
            count(account, 1, began, 10)
            count(account, 1, hour - 119 * MINUTE, 2)
        count_for_table(people, hour - 2 * HOUR, 5)
        count_for_table(people, hour, 50)

    minutes = 120
    assert requests_of(account, WHOLE, began - DAY, began + DAY, minutes) == (13 if ago < DAY else 12)
    if ago < DAY:
        assert requests_of(account, WHOLE, hour - 3 * HOUR, began + DAY, 15) == 13
        assert requests_of(account, people.pk, hour - 3 * HOUR, began + DAY, 15) == 5


def test_a_server_that_has_just_begun_is_copied(account, now):
    hour = start_of(now, 60)
    with before_the_upgrade():
        count(account, 1, hour - 59 * MINUTE, 1, process="one")
        count(account, 1, now, 2, process="one")
    for minutes in series.KEPT:
        assert requests_of(account, WHOLE, hour - DAY, now + HOUR, minutes) == 3


def test_an_older_server_goes_on_counting(account):
    """It writes to the old tables, and to series in which the database itself counts the requests."""
    moment = datetime(2026, 11, 21, 12, tzinfo=UTC)
    count(account, 1, moment, 4, process="older")
    begin_series(account, moment, 4)
    assert RequestSeries.objects.get(account=account).requests == 4
    counts = PeriodCounts()
    counts.traffic(REFUSED).add(Traffic(2))
    newer = Series("newer")
    newer.add(moment, {(account.pk, ""): counts})
    newer.write()
    series.tidy(moment + DAY / 2)
    assert requests_of(account, WHOLE, moment, moment + HOUR, 15) == 2  # an older one has added up its own
    assert fetch("SELECT sum(requests) FROM storage_requestcount") == [(4,)]
