"""Pages about the design of a table, the card of an account, and the ways to them."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.utils.html import strip_tags

from storage.design import design
from storage.domain.errors import OperationTimedOut
from storage.tables import tables
from tests.requests.test_pages import keep

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/ui/a/acme/t/people/design/"
PART = {"HX-Request": "true"}


def text(answer):
    return unescape(" ".join(strip_tags(answer.content.decode()).split()))


def links(answer):
    return [unescape(it) for it in re.findall(r'href="([^"]+)"', answer.content.decode())]


@pytest.fixture
def people(fill):
    """Make two kinds of people in three partitions."""
    fill(
        3_000,
        "'p' || i % 3",
        "'order-' || i",
        "CASE WHEN i % 2 = 0 THEN jsonb_build_object('Email', 'sx' || i, 'Age', i)"
        " ELSE jsonb_build_object('Head', 'sx', 'Budget', i) END",
    )


def test_the_page_loads_its_content(visit, people):
    shell = visit("victor").get(PAGE)
    assert f'hx-get="{PAGE}"' in shell.content.decode()
    assert "Findings" not in text(shell)
    part = visit("victor").get(PAGE, headers=PART)
    assert b"<html" not in part.content
    assert "3 partitions" in text(part)
    assert "Findings" in text(visit("victor").get(PAGE, {"whole": "1"}))


def test_what_a_table_is(visit, people):
    part = visit("victor").get(PAGE, headers=PART)
    shown = text(part)
    assert "RowKey has numbers of different lengths, so order-" in shown
    assert "100–999" not in shown
    assert "1,000–9,999 3 3,000" in shown
    assert "Several kinds of entities" in shown
    assert "No client has queried the table." in shown
    addresses = links(part)
    assert "/ui/a/acme/t/people/?f=PartitionKey+eq+%27p0%27" in addresses
    assert "/ui/a/acme/t/people/?f=isset%28Age%29" in addresses
    assert not any("/bulk/" in it for it in addresses)


def test_editors_get_the_edit_that_mends_keys(visit, people):
    edit = next(it for it in links(visit("eve").get(PAGE, headers=PART)) if "/bulk/" in it)
    assert "pad(substring(RowKey, 6), 4)" in text(visit("eve").get(edit)).replace("&#x27;", "'")


def test_what_its_requests_do(visit, people, send):
    send("Email eq 'a@b'", 1)
    send("PartitionKey eq 'p1' and RowKey eq 'x'", 1)
    part = visit("eve").get(PAGE, headers=PART)
    shown = text(part)
    assert "Table scan Email eq … Sent about 50 times · app/1.0" in shown
    assert "Up to 3,000 entities for one query. It reads 3,000 for each that it returns." in shown
    assert "Second copy in another table" in shown
    assert "Send the query to the table peopleByEmail with this PartitionKey: Email." in shown
    assert "Point PartitionKey eq … and RowKey eq …" in shown


def test_a_query_that_a_reader_asks_about_need_not_have_been_sent(visit, people):
    shown = text(visit("victor").get(PAGE, {"f": "PartitionKey eq 'p1' and Age gt 5"}, headers=PART))
    assert "Your query Partition scan PartitionKey eq … and Age gt …" in shown
    assert "Second copy in the partition" in shown
    for unreadable in ("Age gt", "contains(Email,'a')"):
        assert visit("victor").get(PAGE, {"f": unreadable}, headers=PART).status_code == 200


def test_empty_tables_and_tables_that_take_too_long(visit, table, monkeypatch):
    assert "This table is empty" in text(visit("victor").get(PAGE, headers=PART))

    def fail(table):
        raise OperationTimedOut

    monkeypatch.setattr(design, "describe", fail)
    late = visit("victor").get(PAGE, headers=PART)
    assert (late.status_code, "took too long" in text(late)) == (200, True)
    assert visit("victor").get(PAGE, {"whole": "1"}).status_code == 503


def test_the_account_lists_tables_with_problems(visit, people, account):
    tables.create(account, "calm")
    overview = visit("victor").get("/ui/a/acme/overview/").content.decode()
    assert 'hx-get="/ui/a/acme/design/"' in overview
    card = visit("victor").get("/ui/a/acme/design/", headers=PART)
    assert "people Numbers without leading zeroes" in text(card)
    assert "calm" not in text(card)
    page = text(visit("victor").get("/ui/a/acme/design/"))
    assert "people Numbers without leading zeroes" in page
    assert "calm none" in page


def test_the_grid_and_the_request_log_lead_to_what_would_serve_a_query(visit, people, account):
    costly = "Email eq 'a@b'"
    slow = keep(account, query=f"$filter={costly}".encode(), searched=costly)
    victor = visit("victor")
    assert f"{PAGE}?f=Email+eq+%27a%40b%27" in links(victor.get("/ui/a/acme/t/people/", {"f": costly}))
    [logged] = [
        it for it in links(victor.get(f"/ui/a/acme/requests/{slow.request_id}/")) if "/design/?f=" in it
    ]
    assert "Your query Table scan Email eq …" in text(victor.get(logged, headers=PART))
    good = "PartitionKey eq 'p1' and RowKey eq 'order-0'"
    read = keep(account, query=f"$filter={good}".encode(), searched=good)
    for page in ("/ui/a/acme/t/people/?f=" + quote(good), f"/ui/a/acme/requests/{read.request_id}/"):
        assert not any("/design/?f=" in it for it in links(victor.get(page)))
