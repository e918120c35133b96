"""The schema page of a table."""

import re
from html import unescape

from storage.domain.errors import OperationTimedOut
from storage.entities import schema
from tests.console.markup import text

TABLE = "/ui/a/acme/t/people/"


def test_shows_the_properties_of_all_entities(visit, add_entity):
    add_entity("se", "1", Name="Ada", Age=36)
    add_entity("se", "2", Name="Grace <b>", Age="old")
    add_entity("se", "3", Name="Ada")
    victor = visit("victor")
    page = victor.get(TABLE + "schema/")
    assert "All 3 entities" in text(page)
    names = re.findall(r'<th scope="row"><span class="mono">(\w+)', text(page))
    assert names == ["PartitionKey", "RowKey", "Name", "Age", "Timestamp"]
    assert "66.7%" in text(page)
    assert "Grace &lt;b&gt;" in text(page)

    # a property of several types links to the entities of the rarer ones, an example to the entities that have it
    links = [unescape(link) for link in re.findall(r'href="([^"]*)"', page.content.decode()) if "?f=" in link]
    assert sum("isset%28Age%29" in link for link in links) == 1
    for link in links:
        assert victor.get(link).status_code == 200
    mixed = next(link for link in links if "isset" in link)
    assert re.findall(r'data-key="', victor.get(mixed).content.decode()) == ['data-key="']


def test_an_empty_table_and_another_spelling(visit, add_entity):
    victor = visit("victor")
    assert "This table is empty" in victor.get(TABLE + "schema/").content.decode()
    answer = victor.get("/ui/a/acme/t/PEOPLE/schema/")
    assert (answer.status_code, answer["Location"]) == (301, TABLE + "schema/")
    assert victor.get("/ui/a/acme/t/nobody/schema/").status_code == 404


def test_says_that_counting_took_too_long(visit, add_entity, monkeypatch):
    def too_long(_):
        raise OperationTimedOut

    monkeypatch.setattr(schema, "describe", too_long)
    answer = visit("victor").get(TABLE + "schema/")
    assert answer.status_code == 503
    assert "took too long" in answer.content.decode()
