"""Connections to PostgreSQL: counted, and enough for all processes."""

import psycopg
import pytest
from django.conf import settings

from storage.health import connections
from storage.health.connections import ConnectionState
from storage.runtime import doctor
from storage.runtime.threads import in_thread
from storage.sql import connections as sql
from storage.sql.connections import APPLICATION, ConnectionCounts
from tests.runtime.test_catalog import eventually, opened

pytestmark = pytest.mark.django_db(transaction=True)


async def test_counts_those_of_all_processes():
    async def are_counted():
        """Unless connections of before end meanwhile."""
        before = await in_thread(connections.state)
        with (
            psycopg.connect(settings.LANES_CONNINFO),
            psycopg.connect(settings.LANES_CONNINFO, application_name=APPLICATION),
        ):
            async with opened(), opened():
                after = await in_thread(connections.state)
        assert after.counts.allowed < 300
        return (
            after.counts.processes == before.counts.processes + 2
            and after.counts.ours >= before.counts.ours + 3
            and after.others >= before.others + 1
            and after.most == before.most + 2 * 28
        )

    await eventually(are_counted)


@pytest.mark.parametrize(("processes", "missing"), [(0, 0), (4, 0), (5, 12)])
def test_says_how_many_are_missing(processes, missing):
    counts = ConnectionCounts(allowed=97, used=9, ours=5, processes=processes)
    assert ConnectionState(counts, most=processes * 21).missing == missing


async def test_the_doctor_warns_before_postgresql_refuses(monkeypatch):
    def findings():
        return [finding.severity.value for part, finding in doctor.examine() if part == "connections"]

    async def are_enough():
        return await in_thread(findings) == ["ok"]

    async with opened():
        await eventually(are_enough)  # when the connections of earlier tests are gone
        monkeypatch.setattr(sql, "most_per_process", lambda: 10_000)
        assert await in_thread(findings) == ["ok", "warning"]
