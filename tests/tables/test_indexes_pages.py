"""Indexes of properties on the schema page, and from the explanation of a query."""

import re

import pytest

from storage.core.quotas import INDEXES
from storage.models import Activity, PropertyIndex, Table
from storage.runtime import job_runner
from storage.sql.django import execute
from storage.sql.relations import relation_name
from storage.tables import indexes
from storage.tables.index_rules import INDEXED_FROM, IndexOrigin, IndexReason
from storage.tables.subject import TableVerb
from tests.console.markup import text

# indexes are made outside of transactions
pytestmark = pytest.mark.django_db(transaction=True)

TABLE = "/ui/a/acme/t/people/"
STATE = TABLE + "schema/index/?property=Score"


def state(client):
    return " ".join(text(client.get(STATE)).split())


def test_is_added_watched_used_dropped_and_undone(visit, add_entity):
    add_entity("se", "1", Score=5, Name="Ada")
    max_ = visit("max")
    page = text(max_.get(TABLE + "schema/"))
    for name in ("Score", "Name", "Timestamp"):
        assert f'Add index<span class="visually-hidden">: {name}<' in page
    assert ">: RowKey<" not in page

    answer = max_.post(TABLE + "schema/index/add/", {"property": "Score"}, follow=True)
    assert "Indexing Score of people." in text(answer)
    assert "building" in state(max_)
    assert "hx-get" in max_.get(STATE).content.decode()
    job_runner.run_all()
    assert "not used yet" in state(max_)
    assert "hx-get" not in max_.get(STATE).content.decode()
    assert "has an index already" in text(
        max_.post(TABLE + "schema/index/add/", {"property": "Score"}, follow=True)
    )

    answer = max_.post(TABLE + "schema/index/drop/", {"property": "Score"}, follow=True)
    assert "Dropped the index on Score." in text(answer)
    job_runner.run_all()
    done = Activity.objects.filter(verb=TableVerb.INDEX_DROP).get()
    max_.post(f"/ui/undo/{done.pk}/")
    history = text(max_.get(TABLE + "history/"))
    assert "dropped the index on" in history


def test_one_that_the_server_has_added_says_why_and_is_kept(visit, add_entity):
    add_entity("se", "1", Score=5)
    indexes.add(
        Table.objects.get(), "Score", origin=IndexOrigin.ADAPTIVE, reason=IndexReason("Score ge …", 12, 0.5)
    )
    job_runner.run_all()
    max_ = visit("max")
    shown = state(max_)
    assert "added by the server" in shown
    assert "12 queries had to read many entities" in shown
    assert "Score ge …" in shown
    assert "Keep index" not in state(visit("eve"))

    answer = max_.post(TABLE + "schema/index/add/", {"property": "Score"}, follow=True)
    assert "Keeping the index on Score." in text(answer)
    assert "Keep index" not in state(max_)
    done = Activity.objects.filter(verb=TableVerb.INDEX_KEEP).get()
    answer = max_.post(f"/ui/undo/{done.pk}/", follow=True)
    assert "The server may drop the index again." in text(answer)
    assert "Keep index" in state(max_)


def test_refusals_are_told(visit, add_entity):
    max_ = visit("max")
    table = Table.objects.get()
    for number in range(INDEXES.default):
        indexes.add(table, f"Property{number}")
    page = max_.post(TABLE + "schema/index/add/", {"property": "Score"}, follow=True)
    assert f"A table can have {INDEXES.default} indexes." in text(page)
    page = max_.post(TABLE + "schema/index/add/", {"property": "RowKey"}, follow=True)
    assert "The property name is invalid" in text(page)
    page = max_.post(TABLE + "schema/index/drop/", {"property": "Score"}, follow=True)
    assert "has no index" in text(page)
    eve = visit("eve")
    for action in ("add", "drop"):
        assert eve.post(TABLE + f"schema/index/{action}/", {"property": "Score"}).status_code == 403
    assert "Add index" not in text(eve.get(TABLE + "schema/"))


FILL = """
INSERT INTO {relation} (pk, rk, ts, props, anns, vals)
SELECT 'p', 'r' || lpad(n::text, 6, '0'), 0, jsonb_build_object('Score', n), '', E'\\n,"Score":' || n
FROM generate_series(1, {rows}) AS n
"""


def test_a_query_is_told_what_an_index_would_save_and_gets_one(visit, add_entity):
    table = Table.objects.get()
    relation = relation_name(table.pk)
    execute(FILL.format(relation=relation, rows=2 * INDEXED_FROM + 1))
    execute(f"ANALYZE {relation}")
    max_, query = visit("max"), {"f": "Score gt 9990"}

    def check(client):
        answer = client.post(TABLE + "query/check/", query, headers={"HX-Request": "true"})
        return " ".join(text(answer).split())

    page = check(max_)
    assert re.search(r"With an index on Score, about \d+ entities are read instead of 10,001\.", page)
    assert "Table scan" in page
    assert "Index Score" in page
    assert "Index Score" not in check(visit("eve"))
    page = max_.get(TABLE, query).content.decode()
    assert "An index would find the entities" in page

    form = re.search(r'name="query" value="([^"]*)"', page)
    answer = max_.post(TABLE + "schema/index/add/", {"property": "Score", "query": form[1]})
    assert answer["Location"] == TABLE + "?f=Score+gt+9990"
    assert PropertyIndex.objects.get().origin == "advice"
    job_runner.run_all()

    for page in (check(max_), text(max_.get(TABLE, query))):
        assert "Index range" in page
        assert "The index of a property finds the entities" in page
        assert "an index" not in page

    page = max_.get(TABLE, {"sort": "-Score"}).content.decode()
    assert "Index range" in page
    page = max_.get(TABLE, {"sort": "Timestamp"}).content.decode()
    assert "Index Timestamp" in page
