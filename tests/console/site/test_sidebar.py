"""The sidebar of an account: few items, whose pages are tabs."""

import re

import pytest

from storage.core import registry
from storage.core.subject import Place, Section

MOST = 6  # items of an account above its tables
NAV = re.compile(r'<nav class="sidebar".*?</nav>', re.DOTALL)
LINK = re.compile(
    r'<a href="([^"]+)"(?: aria-current="(\w+)")?[^>]*>\s*<svg.*?</svg><span>([^<]+)</span>', re.DOTALL
)
TAB = re.compile(r'<li><a href="([^"]+)"(?: aria-current="(\w+)")?\s*>([^<]+)</a></li>')


@pytest.fixture
def look(visit):
    """Return `look("alice", "/ui/")`: the links of the sidebar and the tabs of a page."""

    def look_at(user, address):
        page = visit(user).get(address).content.decode()
        items = NAV.search(page)[0].partition('id="sidebar-tables"')[0]
        head = page.partition('class="heading page-head"')[2].partition('<div class="title">')[0]
        return LINK.findall(items), TAB.findall(head)

    return look_at


def test_an_owner_has_six_items_above_the_tables(look):
    items, tabs = look("alice", "/ui/a/acme/overview/")
    assert [label for _, _, label in items] == [
        "Overview", "Queries", "Access", "History", "Traffic", "Settings", "Tables",
    ]  # fmt: skip
    assert items[0] == ("/ui/a/acme/overview/", "page", "Overview") and tabs == []


def test_pages_of_a_section_are_tabs_of_its_item(look):
    items, tabs = look("alice", "/ui/a/acme/keys/")
    assert ("/ui/a/acme/sas/", "true", "Access") in items
    assert tabs == [
        ("/ui/a/acme/sas/", "", "Policies &amp; SAS"),
        ("/ui/a/acme/keys/", "page", "Keys"),
        ("/ui/a/acme/members/", "", "Members"),
    ]


def test_a_page_below_a_tab_lights_its_item_and_has_a_heading_of_its_own(look):
    items, tabs = look("alice", "/ui/a/acme/sas/new/")
    assert ("/ui/a/acme/sas/", "true", "Access") in items and tabs == []


def test_a_section_with_a_single_page_for_the_reader_is_that_page(look):
    items, tabs = look("victor", "/ui/a/acme/members/")
    assert ("/ui/a/acme/members/", "page", "Members") in items and tabs == []
    assert "Access" not in [label for _, _, label in items]


def test_each_page_with_a_letter_opens_from_every_page(visit):
    page = visit("alice").get("/ui/a/acme/").content.decode()
    letters = [it.letter.lower() for it in registry.pages(Place.ACCOUNT) if it.letter]
    assert sorted(re.findall(r'data-go="(\w)"', page)) == sorted([*letters, "h"])


def test_the_account_has_few_items_also_with_every_subject():
    pages = [it for it in registry.pages(Place.ACCOUNT) if it.url != "tables:index"]
    assert len({it.section or it.url for it in pages}) <= MOST
    assert {it.section for it in registry.pages(Place.SERVER)} <= {None, Section.SERVER, Section.HELP}
