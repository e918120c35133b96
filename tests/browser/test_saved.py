"""Saved queries over the grid: a dialog, messages about changes, keyboard navigation; the short address of a long
filter.
"""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.page import check_axe, check_reflow

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
    result = page.locator("#saved-menu")
    result.evaluate("it => it.replaceChildren()")  # else what was shown before is there until the answer
    page.locator("#saved-button").click()
    expect(result.locator("#recent-group")).to_be_visible()
    return result


@pytest.fixture
def saved(open_grid):
    """Open the grid of a shared query with a parameter, which has run with a value; delete the query in the end."""
    page = open_grid("queries/new/?f=Age+ge+{{least}}")
    page.get_by_label("Name", exact=True).fill(HOSTILE)
    page.get_by_text("Share with everyone in this account").click()
    page.get_by_role("button", name="Save query").click()
    # it asks for the value of the parameter
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(page.locator("#id_v-least")).to_be_focused()
    page.locator("#id_v-least").fill("59")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#applied")).to_contain_text("least 59")
    yield page
    page.goto("/ui/a/devstoreaccount1/queries/")
    page.get_by_role("button", name=f"Delete {HOSTILE}").click()
    expect(page.locator("#queries")).not_to_contain_text(HOSTILE)


@pytest.mark.long
def test_a_query_is_saved_in_a_dialog_over_the_grid(open_grid):
    page = open_grid("?f=Age+ge+58")
    address = page.url
    menu(page).get_by_role("link", name="Save this query").click()
    dialog = page.locator("#part-dialog")
    expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    expect(dialog.get_by_label("Filter (optional)")).to_have_value("Age ge 58")
    check_axe(page, "#part-dialog")
    dialog.get_by_label("Name", exact=True).fill(" ")
    dialog.get_by_role("button", name="Save query").click()
    expect(dialog.locator("[data-error-summary]")).to_be_focused()
    dialog.get_by_role("link", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert page.url == address


@pytest.mark.long
def test_a_change_of_a_saved_query_is_told_and_put_back_at_will(saved):
    applied = saved.locator("#applied")
    saved.get_by_label("Page size").select_option("25")
    changed = applied.get_by_text("changed since saved")
    expect(changed).to_be_visible()
    check_axe(saved, "#applied")
    check_reflow(saved)
    saved.reload()
    applied.get_by_role("button", name="Update").click()
    expect(changed).to_have_count(0)
    # values in the place of its parameters are put back over the grid, without leaving it
    run(saved, "Age ge 58")
    applied.get_by_role("link", name="Update…").click()
    dialog = saved.locator("#part-dialog")
    expect(dialog).to_contain_text("The saved filter has these parameters: least.")
    dialog.get_by_role("link", name="Cancel").click()
    expect(changed).to_be_visible()


@pytest.mark.long
def test_a_saved_query_is_found_by_keys(saved):
    expect(menu(saved).get_by_role("link", name=HOSTILE)).to_contain_text("least")
    check_axe(saved, "#saved-menu")
    saved.keyboard.press("Escape")
    saved.keyboard.press("Control+k")
    saved.keyboard.type("of an age")
    expect(saved.locator("#palette-hits")).to_contain_text(HOSTILE)
    saved.keyboard.press("Escape")
    saved.locator("h1").click()
    saved.keyboard.press("g")
    saved.keyboard.press("q")
    saved.wait_for_url("**/queries/")


@pytest.mark.long
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
    page.get_by_role("link", name="Show as JSON").click()
    expect(page.locator("#results .documents")).to_be_visible()
    assert len(page.url) < 400
    page.get_by_role("link", name="Show as grid").click()
    expect(page.locator("#results")).to_have_attribute("data-filter", f"{long} or Age ge 1")
