"""A query is saved, found, changed, run with values, deleted and brought back; a long one has a short address."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_reflow

TABLE = "/ui/a/devstoreaccount1/t/people/"
HOSTILE = '<b onclick="x">Of an age</b>'


@pytest.fixture
def open_grid(open_page, admin, tables):
    def open_it(path="", **options):
        return open_page(TABLE + path, state=admin, reduced_motion="reduce", **options)

    return open_it


def run(page, text):
    page.evaluate("text => { const field = document.getElementById('filter'); field.value = text; }", text)
    with page.expect_response(lambda answer: answer.request.headers.get("hx-source") == "form#query"):
        page.evaluate("document.getElementById('query').requestSubmit()")


def menu(page):
    found = page.locator("#saved-menu")
    found.evaluate("it => it.replaceChildren()")  # else what was shown before is there until the answer
    page.locator("#saved-button").click()
    expect(found.locator("#recent-group")).to_be_visible()
    return found


def test_a_saved_query_from_first_to_last(open_grid):
    page = open_grid("?f=Age+ge+58")
    # in a dialog over the grid, which says what is wrong, and goes without a trace
    address = page.url
    menu(page).get_by_role("link", name="Save this query").click()
    dialog = page.locator("#part-dialog")
    expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    check_axe(page, "#part-dialog")
    dialog.get_by_label("Name", exact=True).fill(" ")
    dialog.get_by_role("button", name="Save query").click()
    expect(dialog.locator("[data-error-summary]")).to_be_focused()
    dialog.get_by_role("link", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert page.url == address
    menu(page).get_by_role("link", name="Save this query").click()
    expect(dialog.get_by_label("Filter (optional)")).to_have_value("Age ge 58")
    page.get_by_label("Name", exact=True).fill(HOSTILE)
    page.get_by_label("Filter (optional)").fill("Age ge {{least}}")
    page.get_by_text("Share with everyone in this account").click()
    page.get_by_role("button", name="Save query").click()

    # it asks for what stands in its place, and says why a value cannot
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.locator("#id_v-least")).to_be_focused()
    check(page)
    page.locator("#id_v-least").fill("59")
    page.get_by_role("button", name="Run", exact=True).click()
    applied = page.locator("#applied")
    expect(applied).to_contain_text(HOSTILE)
    expect(applied).to_contain_text("least 59")
    expect(page.locator("#results [data-grid] tbody tr")).to_have_count(1)

    # what is changed is said, kept in the address, and saved at will
    page.get_by_label("Page size").select_option("25")
    expect(applied.get_by_text("changed since saved")).to_be_visible()
    check_axe(page, "#applied")
    check_reflow(page)
    address = page.url
    page.reload()
    assert page.url == address
    expect(applied.get_by_text("changed since saved")).to_be_visible()
    applied.get_by_role("button", name="Update").click()
    expect(page.locator("#toasts")).to_contain_text(f"Saved the query {HOSTILE}.")
    expect(applied.get_by_text("changed since saved")).to_have_count(0)

    # values in the place of its parameters are put back over the grid, without leaving it
    run(page, "Age ge 58")
    applied.get_by_role("link", name="Update…").click()
    dialog = page.locator("#part-dialog")
    expect(dialog).to_contain_text("The saved filter has these parameters: least.")
    check_axe(page, "#part-dialog")
    dialog.get_by_role("link", name="Cancel").click()
    expect(applied.get_by_text("changed since saved")).to_be_visible()

    # its name leads to its form
    applied.get_by_role("link", name=HOSTILE).click()
    page.get_by_label("Description (optional)").fill("Of whom?")
    check(page)
    page.get_by_role("button", name="Save query").click()
    expect(page.locator("#queries")).to_contain_text("Of whom?")

    # it is found where people look, deleted, and undone
    page.goto(TABLE)
    expect(page.locator("#sidebar-queries")).to_contain_text(HOSTILE)
    expect(menu(page).get_by_role("link", name=HOSTILE)).to_contain_text("least")
    check_axe(page, "#saved-menu")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("of an age")
    expect(page.locator("#palette-hits")).to_contain_text(HOSTILE)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/queries/")
    check(page)
    page.get_by_role("button", name=f"Delete {HOSTILE}").click()
    expect(page.locator("#queries")).not_to_contain_text(HOSTILE)
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#queries")).to_contain_text(HOSTILE)


def test_a_long_filter_has_a_short_address(open_grid):
    page = open_grid("?tz=utc")
    long = " or ".join(f"Name eq '{'n' * 40}{number}'" for number in range(60)) + " or Age ge 0"
    page.goto(page.url.replace("tz=utc", f"top=25&tz=utc&f={quote(long)}"))
    assert len(page.url) < 150
    expect(page).to_have_url(re.compile(re.escape("?k=")))
    expect(page.locator("#filter")).to_have_value(long)

    # by the bar as well, where the address is the one that was redirected to
    run(page, f"{long} or Age ge 1")
    expect(page.locator("#results")).to_have_attribute("data-filter", f"{long} or Age ge 1")
    second = page.url
    assert len(second) < 150

    # every way on from there keeps it
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".pager .shown")).to_have_text("26 to 50")
    page.go_back()
    expect(page.locator(".pager .shown")).to_have_text("1 to 25")
    assert page.url == second
    page.get_by_role("link", name="JSON").click()
    expect(page.locator("#results .documents")).to_be_visible()
    assert len(page.url) < 400
    page.get_by_role("link", name="Grid").click()
    expect(page.locator("#results")).to_have_attribute("data-filter", f"{long} or Age ge 1")
