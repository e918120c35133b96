"""Fixtures of tables with many entities and counted queries."""

import pytest
from django.db import connection
from django.utils import timezone

from storage.design import design
from storage.domain.filters.parser import parse
from storage.metrics.query_shapes import QuerySample, QueryShapes
from storage.sql.relations import relation_of


@pytest.fixture(autouse=True)
def _forgetful():
    design._kept.clear()


@pytest.fixture
def fill(table):
    """Return `fill(number, pk, rk, props)`, which adds so many rows by SQL expressions of `i`."""

    def fill(number, pk, rk, props="'{}'::jsonb"):
        relation = relation_of(table)
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {relation} (pk, rk, ts, props, anns, vals) SELECT {pk}, {rk}, i, {props}, '', 'xx'"
                f" FROM generate_series(1, {number}) AS i"
            )
            cursor.execute(f"ANALYZE {relation}")

    return fill


@pytest.fixture
def send(table):
    """Return `send(filter, entities)`, to count queries of a table as the Table service does."""

    def send(text, entities, times=50):
        sample = QuerySample()
        for _ in range(times):
            sample.add(parse(text) if text else None, b"app/1.0", entities)
        shapes = QueryShapes()
        shapes.add(timezone.now(), {(table.account_id, table.name): sample})
        shapes.write()

    return send
