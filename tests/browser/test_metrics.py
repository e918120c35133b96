"""Metrics in a real browser: drawn, as a table, zoomed by dragging, and readable on a phone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import check_axe, check_on_a_phone

pytestmark = pytest.mark.long
PAGE = "/ui/a/devstoreaccount1/metrics/?range=1h"


def test_charts_are_drawn_zoomed_and_renewed(open_page, admin, tables):
    page = open_page(PAGE, state=admin)
    requests = page.locator("#chart-operations")
    while not requests.locator(".chart-legend").count():  # until the server has written what it counted
        page.reload()
    page.get_by_role("link", name="Data table").click()
    table = page.locator(".chart-numbers")
    expect(table.locator("tbody tr")).not_to_have_count(0)
    check_axe(page, "main")
    page.get_by_role("link", name="Charts").click()
    page.evaluate("document.getElementById('metrics').dataset.old = ''")
    page.get_by_role("link", name="Refresh").click()
    expect(page.locator("#metrics:not([data-old])")).to_be_visible()
    expect(requests.locator("canvas")).to_be_visible()

    place = requests.locator(".u-over").bounding_box()
    middle = place["y"] + place["height"] / 2
    page.mouse.move(place["x"] + place["width"] - 2, middle)
    expect(requests.locator("output")).not_to_be_empty()
    page.mouse.move(place["x"] + 10, middle)
    page.mouse.down()
    page.mouse.move(place["x"] + place["width"] / 2, middle, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile(r"/metrics/\?since=.+&until=.+"))
    expect(page.get_by_label("From")).not_to_be_empty()
    expect(page.get_by_role("link", name="24 h")).not_to_have_attribute("aria-current", "true")
    check_axe(page, "main")

    check_on_a_phone(page)
    page.set_viewport_size({"width": 390, "height": 900})
    expect(page.get_by_label("From", exact=True)).to_be_visible()
    expect(page.get_by_label("To", exact=True)).to_be_visible()


# the colours of times without data, and of the text in them
COLOURS = """
figure => ["--gap", "--axis"].map(name => {
    const probe = figure.querySelector(".chart-place").appendChild(document.createElement("i"));
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
})
"""


def test_times_without_data_have_room_for_text_in_forced_colors(open_page, admin, tables):
    page = open_page(PAGE.replace("1h", "90d"), state=admin, forced_colors="active")
    requests = page.locator("#chart-operations")
    while not requests.locator("canvas").count():
        page.reload()
    background, text = requests.evaluate(COLOURS)
    assert background != text
