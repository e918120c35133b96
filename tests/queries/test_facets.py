"""Frequent values among the results of a query, each a link to a narrower query."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import reverse

ADDRESS = "/ui/a/acme/t/people/facets/"


@pytest.fixture
def cities(add_entity):
    for number, city in enumerate(["Oslo"] * 3 + ["it's <b>"] * 2 + ["Bergen"]):
        add_entity("no", str(number), City=city, Number=number, Same=True)


def facets_of(response):
    """Name of the property → values, each with its count and the filter that it leads to."""
    content = response.content.decode()
    results = {}
    for name, body in re.findall(r'<h2 class="mono" title="([^"]*)">.*?<ol>(.*?)</ol>', content, re.DOTALL):
        links = re.findall(
            r'href="([^"]*)".*?class="value mono">(.*?)</span>.*?count">(\d+)<', body, re.DOTALL
        )
        results[name] = [
            (unescape(value), int(count), parse_qs(urlsplit(unescape(href)).query)["f"][0])
            for href, value, count in links
        ]
    return results


def test_counts_values_and_leads_to_them(visit, cities):
    response = visit("victor").get(ADDRESS)
    assert facets_of(response) == {
        "City": [
            ("Oslo", 3, "City eq 'Oslo'"),
            ("it's <b>", 2, "City eq 'it''s <b>'"),
            ("Bergen", 1, "City eq 'Bergen'"),
        ]
    }
    assert "All 6 entities" in response.content.decode()
    # a bar for the share of each
    assert re.findall(r'width="([\d.]+)%"', response.content.decode()) == ["50.0", "33.3", "16.7"]


def test_counts_what_the_filter_finds_and_narrows_it(visit, cities):
    result = facets_of(visit("victor").get(ADDRESS, {"f": "Number le 4 or Number eq 5", "facets": "1"}))
    assert result["City"][0] == ("Oslo", 3, "(Number le 4 or Number eq 5) and City eq 'Oslo'")


def test_values_that_do_not_fit_into_addresses_get_no_link(visit, add_entity):
    for number in range(4):
        add_entity("se", str(number), Name="half \ud800" if number % 2 else "whole")
    assert facets_of(visit("victor").get(ADDRESS)) == {"Name": [("whole", 2, "Name eq 'whole'")]}


def test_says_what_there_is_not(visit, add_entity):
    victor = visit("victor")
    assert "No property has frequent values" in victor.get(ADDRESS).content.decode()
    assert "Syntax error" in victor.get(ADDRESS, {"f": "Number le"}).content.decode()


def test_the_grid_asks_for_them_when_its_address_says_so(visit, cities):
    grid = reverse("entities:index", args=("acme", "people"))
    victor = visit("victor")
    assert 'id="facets"' not in victor.get(grid).content.decode()
    shown = victor.get(grid, {"facets": "1"}).content.decode()
    assert f'hx-get="{ADDRESS}?facets=1"' in shown
    assert re.search(rf'href="{re.escape(grid)}"\s+aria-expanded="true"', shown)
