"""The past of a table in a real browser: marks in the grid, a range that a drag selects, versions by keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe

pytestmark = pytest.mark.long
ACCOUNT = "/ui/a/devstoreaccount1/"


@pytest.fixture
def ranged(service):
    """Make a table in which the Status of one entity was changed last."""
    table = service.create_table("ranged")
    for number in range(3):
        table.upsert_entity({"PartitionKey": "p", "RowKey": str(number), "Status": "paid"})
    table.upsert_entity({"PartitionKey": "p", "RowKey": "1", "Status": "lost"})
    yield table
    service.delete_table("ranged")


@pytest.fixture
def past(open_page, admin, ranged):
    """Open the grid as it was before the last change."""
    page = open_page(f"{ACCOUNT}t/ranged/", state=admin)
    page.locator("#past-button").click()
    expect(page.locator(".travel")).to_contain_text("read-only")
    expect(status(page)).to_have_text("paid")
    return page


def status(page):
    return page.locator("td[data-property=Status]").nth(1)


def test_times_are_whole_in_their_fields(past):
    fields = past.locator(".travel .moment-field > [name]")
    expect(fields).to_have_count(3)
    assert fields.evaluate_all("all => all.every(it => it.value && it.scrollWidth <= it.clientWidth)")


def test_ways_to_another_time_are_whole_on_a_narrow_page(past):
    past.set_viewport_size({"width": 390, "height": 844})
    right = past.locator(".travel").evaluate("it => it.getBoundingClientRect().right")
    buttons = past.locator(".travel .button:visible")
    ends = buttons.evaluate_all("all => all.map(it => it.getBoundingClientRect().right)")
    assert ends and max(ends) < right


def test_a_marked_cell_shows_its_current_value_and_ignores_keys(past):
    past.locator("td[data-property=Status]").first.click()
    past.keyboard.press("ArrowDown")
    expect(past.locator("#grid-tip")).to_contain_text("Now: lost")
    past.keyboard.type("x")
    expect(past.locator("[data-grid] td input:not([type=checkbox])")).to_have_count(0)
    shadow = "cell => getComputedStyle(cell).boxShadow"
    assert status(past).evaluate(shadow) != "none"
    past.get_by_label("Mark differences").uncheck()
    assert status(past).evaluate(shadow) == "none"
    past.reload()
    expect(past.get_by_label("Mark differences")).not_to_be_checked()
    past.get_by_label("Mark differences").check()


def test_a_range_dragged_on_the_histogram_can_be_undone(past, ranged):
    histogram = past.locator("[data-travel]")
    box = histogram.bounding_box()
    since = past.get_by_role("textbox", name="From")
    address, before = past.url, since.input_value()
    since.fill("")
    past.mouse.move(box["x"] + box["width"] / 3, box["y"] + 9)
    past.mouse.down()
    past.mouse.move(box["x"] + box["width"] / 2, box["y"] + 9, steps=4)
    past.mouse.up()
    expect(histogram.locator("a.marked").nth(9)).to_be_attached()
    assert past.url == address
    expect(since).to_have_value(histogram.locator("a.marked").first.get_attribute("data-since"))

    since.fill(before)
    past.get_by_role("textbox", name="To").fill("2999-01-01 00:00:00Z")
    check_axe(past, "main")
    past.get_by_role("button", name="Undo this range").click()
    panel = past.locator("#revert")
    expect(panel.get_by_role("heading", name="Undo changes to ranged")).to_be_focused()
    panel.get_by_role("button", name="Undo 1 change").click()
    expect(past.locator("#toasts")).to_contain_text("Undid changes to 1 entity.")
    assert ranged.get_entity("p", "1")["Status"] == "paid"


def test_versions_of_an_entity_are_chosen_by_keys(open_page, admin, ranged):
    page = open_page(f"{ACCOUNT}t/ranged/entity/history/?pk=p&rk=1", state=admin, width=390)
    versions = page.locator(".versions li")
    expect(versions).to_have_count(2)
    check(page)
    versions.first.get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(versions.nth(1).get_by_role("link")).to_have_attribute("aria-current", re.compile("."))
