"""The grid, an entity and an export as of a time: earlier values, read-only, and their differences from now."""

import re
from datetime import UTC, datetime
from html import unescape
from urllib.parse import quote, unquote, urlencode

import pytest

from storage.domain.access.actor import SERVER
from storage.domain.entities.changes import Delete, Upsert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.entities.moments import Moment
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.models import Account, Activity
from storage.relations import history
from storage.sql import entities as sql
from storage.sql.django import fetch, run
from storage.sql.relations import relation_name
from storage.tables import tables

TABLE = "/ui/a/acme/t/orders/"


@pytest.fixture
def orders(cast):
    return tables.create(Account.objects.get(), "orders")


@pytest.fixture
def write(orders):
    """Return `write("1", Status="paid")`, which replaces an entity and returns the time after it; `write("1")`
    deletes it.
    """

    def write(row_key, **properties):
        key = EntityKey("store", row_key)
        values = {name: EdmValue(Edm.STRING, value) for name, value in properties.items()}
        change = Upsert(Entity(key, values), merge=False) if properties else Delete(key, ANY)
        run(sql.change(relation_name(orders.pk), change, history.recorder(orders.account, SERVER)))
        [[ticks]] = fetch("SELECT (extract(epoch FROM clock_timestamp()) * 10000000)::bigint")
        return str(Moment(ticks))

    return write


@pytest.fixture
def then(write):
    """Return a time after which one of three entities was changed, one deleted, and another inserted."""
    write("1", Status="paid", Note="same")
    write("2", Status="new")
    then = write("3", Status="packed")
    write("1", Status="lost", Note="same")
    write("2")
    write("4", Status="later")
    return then


def rows(response):
    return re.findall(r"<tr data-key.*?</tr>", response.content.decode(), re.DOTALL)


def cell(row, name):
    return re.search(rf'<td[^>]*data-property="{name}"[^>]*>', row)[0]


def test_the_table_that_had_the_name_then(visit, then, orders):
    tables.delete(orders.account, "orders")
    assert visit("eve").get(TABLE).status_code == 404
    assert ">paid<" in rows(visit("eve").get(TABLE, {"asof": then}))[0]
    tables.create(orders.account, "orders")
    assert not rows(visit("eve").get(TABLE))
    assert ">paid<" in rows(visit("eve").get(TABLE, {"asof": then}))[0]
    key = {"pk": "store", "rk": "2", "asof": then}
    assert "new" in visit("eve").get(f"{TABLE}entity/", key).content.decode()
    versions = visit("eve").get(f"{TABLE}entity/history/", key)
    page = unescape(versions.content.decode())
    assert "new" in page and f"/t/orders/?asof={quote(then, safe='')}" in page
    assert all("asof=" in it for it in re.findall(r'href="(/ui/a/acme/t/orders/entity/history/[^"]*)"', page))
    assert f'name="asof" value="{then}"' in page and 'name="etag"' not in page
    assert visit("eve").post(f"{TABLE}entity/history/?{urlencode(key)}", {"v": 1}).status_code == 404


def test_the_grid_as_of_a_time(visit, then):
    page = visit("eve").get(TABLE, {"asof": then})
    text = page.content.decode()
    first, second, third = rows(page)
    assert ">paid<" in first and ">new<" in second and ">packed<" in third
    assert 'title="Now: lost"' in cell(first, "Status") and "data-now" not in cell(first, "Note")
    assert "data-gone" in second and "data-now" not in third and "data-gone" not in third
    assert "2 entities on this page differ from now" in re.sub(r"\s+", " ", text)
    assert "Read-only view of the past" in text and "of 3" in text
    # nothing that writes, and whatever reads knows the time
    shortcuts = ('aria-keyshortcuts="Alt+N"', 'aria-keyshortcuts="Alt+D"')  # the list of keys has them too
    for tool in ("data-cell=", "data-paste", "data-delete", 'id="facets-button"', *shortcuts):
        assert tool not in text
    assert f"asof={then}" in unescape(re.search(r'href="(/ui/a/acme/t/orders/entity/[^"]*)"', first)[1])
    assert f'data-asof="{then}"' in text and f'name="asof" value="{then}"' in text

    result = visit("eve").get(TABLE, {"asof": then, "f": "Status eq 'new'"})
    assert len(rows(result)) == 1
    by_status = visit("eve").get(TABLE, {"asof": then, "sort": "-Status"})
    assert [re.search("paid|packed|new", row)[0] for row in rows(by_status)] == ["paid", "packed", "new"]
    counted = visit("eve").get(f"{TABLE}count/", {"asof": then}, headers={"HX-Request": "true"})
    assert 'data-number="3"' in counted.content.decode()


def test_an_entity_and_a_value_as_of_a_time(visit, then):
    key = {"pk": "store", "rk": "2", "asof": then}
    for tab in ("form", "json"):
        page = visit("eve").get(f"{TABLE}entity/", {**key, "tab": tab}).content.decode()
        assert "new" in page and "read-only" in page and 'value="save"' not in page
    value = visit("victor").get(f"{TABLE}value/", {**key, "property": "Status"})
    assert "new" in value.content.decode()
    later = visit("eve").get(f"{TABLE}entity/", {**key, "rk": "4"})
    assert later.status_code == 302 and "/history/" in later["Location"]


@pytest.mark.parametrize("scope", ["rows", "query", "table"])
def test_exports_and_copies_of_the_past(visit, then, scope):
    page = visit("victor").get(TABLE, {"asof": then}).content.decode()
    keys = re.findall(r'name="key" form="selection"\s+value="([^"]+)"', page)
    fields = {"scope": scope, "key": keys[:2], "f": "Status ne 'packed'", "asof": then}
    sent = visit("victor").post(f"{TABLE}export/", {**fields, "format": "csv"})
    lines = b"".join(sent.streaming_content).decode().splitlines()
    assert len(lines) == (4 if scope == "table" else 3)
    assert "new" in lines[2] and "lost" not in "".join(lines)
    assert Activity.objects.latest("id").detail["as_of"] == then
    copied = visit("victor").post(f"{TABLE}copy/", {**fields, "as": "json"}).json()["text"]
    assert '"paid"' in copied and '"lost"' not in copied


def go(visit, **fields):
    return unescape(visit("victor").get(f"{TABLE}past/", fields)["Location"])


def test_ways_through_the_past(visit, write):
    first = write("1", Status="a")
    second = write("1", Status="b")
    third = write("1", Status="c")

    def seen(address):
        return re.search(">([abc])<", rows(visit("victor").get(address))[0])[1]

    assert seen(go(visit, asof=first, go="next")) == "b"
    assert seen(go(visit, asof=third, go="previous", f="Status ne 'x'")) == "c"  # its last change
    assert "Status+ne" in go(visit, asof=third, go="previous", f="Status ne 'x'")
    back = go(visit, asof=second, go="previous")
    assert seen(back) == "b"
    earlier = go(visit, asof=re.search("asof=([^&]+)", back)[1].replace("%3A", ":"), go="previous")
    assert seen(earlier) == "b" or seen(earlier) == "a"
    assert f"asof={first.replace(':', '%3A')}" in go(visit, asof=first, go="at", at="nonsense")
    chosen = go(visit, asof=first, go="at", at="2026-11-21T14:32:00", tz="utc")
    assert "asof=2026-11-21T14%3A32%3A00Z" in chosen
    assert "asof=" in go(visit)

    bars = visit("victor").get(f"{TABLE}past/histogram/", {"asof": second}).content.decode()
    numbers = re.findall(r": (\d+) changes?</title>", bars)
    assert len(numbers) == 72 and sum(map(int, numbers)) == 3 and "asof=" in bars


def test_times_that_cannot_be_shown(visit, orders, write):
    write("1", Status="a")
    too_old = visit("victor").get(TABLE, {"asof": "2001-01-01T00:00:00Z"})
    assert too_old.status_code == 422 and "Changes are kept since" in too_old.content.decode()
    assert "Back to now" in too_old.content.decode()
    wrong = visit("victor").get(f"{TABLE}?{urlencode({'asof': 'yesterday', 'f': 'A eq 1'})}", follow=True)
    assert "This is not a time" in wrong.content.decode() and "asof" not in wrong.request["QUERY_STRING"]
    history.end(orders.account)
    off = visit("victor").get(f"{TABLE}past/", follow=True)
    assert "keeps no history" in off.content.decode()


def test_the_past_opens_before_the_last_change(visit, write):
    """The effect of the change is marked; a range that begins there can be undone by users with that permission."""
    write("1", Status="paid")
    write("2", Status="new")
    write("1", Status="lost")
    page = visit("max").get(go(visit)).content.decode()
    assert "1 entity on this page differs from now" in page and ">paid<" in page
    assert "Undo this range" in page and 'name="since"' in page
    assert "Undo this range" not in visit("eve").get(go(visit)).content.decode()
    # a table that was empty then says so, without an example of how to fill it
    write("1")
    write("2")
    empty = visit("max").get(go(visit, go="at", at="2999-01-01T00:00:00"), follow=True)
    assert empty.status_code == 422
    time = re.search("asof=([^&]+)", go(visit, go="at", at=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}Z"))[1]
    empty = visit("max").get(TABLE, {"asof": unquote(time)}).content.decode()
    assert "The table was empty then" in empty and "azure" not in empty
