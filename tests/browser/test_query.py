"""The query above a grid, as its acceptance list has it: written as text and as rows, checked, repaired, run."""

import contextlib
import re

import pytest
from playwright.sync_api import Error, expect

from tests.browser.page import LOOK_AT_FOCUS, Held, check_axe, check_reflow

CHECK = "**/query/check/"
TABLE = "/ui/a/devstoreaccount1/t/queried/"
# spaces as a user might type them: switching tabs must not tidy them
TEXT = "PartitionKey  eq 'se' and (Age ge 3 or  Name eq 'Ada 1')"


@pytest.fixture(scope="module")
def queried(service):
    people = [{"PartitionKey": "se", "RowKey": f"{n:02}", "Name": f"Ada {n}", "Age": n} for n in range(60)]
    with service.create_table("queried") as table:
        table.submit_transaction([("create", person) for person in people])


@pytest.fixture
def page(open_page, admin, queried):
    """Open the table in a window that shows fifteen entities."""
    return open_page(TABLE, state=admin, width=1280, height=720)


@pytest.fixture
def field(page):
    """Focus the filter and return it, with the editor that comes with the first focus."""
    field = page.get_by_label("$filter")
    field.click()
    page.locator(".cm-editor").wait_for()
    return field


# faster than any pause for which a check waits, however busy the browser is
TYPE_QUICKLY = """
async (field, text) => {
    field.focus();
    for (const letter of text) {
        document.execCommand("insertText", false, letter);
        await null;
    }
}
"""


def scripts(page):
    return page.evaluate(
        "performance.getEntriesByType('resource').map(it => it.name).filter(it => it.endsWith('.js'))"
    )


def written(page):
    return page.locator("#filter")


def settle(page):
    """Until what is typed was checked."""
    # no function to wait for: that would be evaluated, which the CSP forbids
    expect(page.locator("#query-card[aria-busy]")).to_have_count(0)


def top_of(page, selector):
    return page.locator(selector).first.bounding_box()["y"]


def entities(page):
    return page.locator(".grid tbody tr")


def proposal(page):
    return page.locator(".cm-tooltip-autocomplete [aria-selected]")


def open_builder(page):
    page.get_by_role("link", name="Builder", exact=True).click()
    return page.locator(".query-builder")


@pytest.mark.long
def test_entities_are_in_view_and_keys_reach_them(page):
    assert top_of(page, ".grid tbody tr") <= 206
    assert entities(page).nth(14).bounding_box()["y"] + 30 <= top_of(page, ".pager")
    # a second skip link, a key, and the arrow out of the filter
    focused = page.locator(".grid td:focus")
    for key in ("Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(focused).to_have_count(1)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("e")
    expect(focused).to_have_count(1)
    page.get_by_label("$filter").click()
    page.locator(".cm-editor").wait_for()
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_count(1)


@pytest.mark.long
def test_messages_below_the_filter_move_no_entities(page, field):
    first = top_of(page, ".grid tbody tr")
    for text, message in (
        ("Age ge 3 and startswith(Name,'Ada')", "#filter_error p"),
        ("Nam eq 'x'", ".query-hints li"),
        (" or ".join(["Age eq 5"] * 60), ".query-access"),
    ):
        field.fill(text)
        page.locator(message).wait_for()
        settle(page)
        assert top_of(page, ".grid tbody tr") == first, text


def test_completions_are_chosen_by_keys_and_complete_filters_run(page, field):
    field.press_sequentially("Na")
    expect(proposal(page)).to_contain_text("Name")
    page.keyboard.press("Tab")
    expect(written(page)).to_have_value("Name ")
    field.press_sequentially("eq ")
    expect(proposal(page)).to_contain_text("'Ada ")
    page.keyboard.press("Enter")
    expect(written(page)).to_have_value(re.compile("^Name eq 'Ada "))
    expect(proposal(page)).to_have_count(0)
    page.keyboard.press("Enter")
    expect(entities(page)).to_have_count(1)
    # Ctrl+Enter runs it while there are proposals too
    field.fill("Age ge 57 ")
    page.keyboard.press("Control+Space")
    expect(proposal(page)).to_have_text("and")
    page.keyboard.press("Control+Enter")
    expect(entities(page)).to_have_count(3)
    expect(proposal(page)).to_have_count(0)


@pytest.mark.long
def test_the_editor_is_loaded_with_the_first_focus(page):
    assert not [name for name in scripts(page) if "codemirror" in name]
    page.get_by_label("$filter").click()
    page.locator(".cm-editor").wait_for()
    assert len([name for name in scripts(page) if "codemirror" in name]) == 1
    expect(page.get_by_label("$filter")).to_be_focused()
    assert page.evaluate(LOOK_AT_FOCUS, "body")["faults"] == []


@pytest.mark.long
def test_quick_edits_are_checked_once_and_a_late_check_changes_nothing(page, field):
    checks = Held(page, CHECK)
    field.fill("Age ge 3")
    late = checks.take()
    field.evaluate(TYPE_QUICKLY, "00 and Age le 400")
    checks.take().continue_()
    settle(page)
    assert checks.requests == []
    page.unroute(CHECK)
    with contextlib.suppress(Error):  # the page may have given it up already
        late.continue_()
    expect(page.locator(".improve")).to_have_attribute("href", re.compile(r"Age\+ge\+300\+and\+Age\+le\+400"))
    expect(entities(page)).to_have_count(50)


def test_an_error_is_marked_and_fixed_with_one_click(page, field):
    field.fill("Age ge 3 and startswith(Name,'Ada')")
    page.locator(".cm-lintRange-error").wait_for()
    assert page.locator(".cm-lintRange-error").all_inner_texts() == ["startswith(Name,'Ada')"]
    expect(field).to_have_attribute("aria-invalid", "true")
    check_axe(page, "#query-card")
    page.get_by_role("link", name="Use Name ge 'Ada'").click()
    expect(written(page)).to_have_value("Age ge 3 and Name ge 'Ada' and Name lt 'Adb'")
    expect(field).to_be_focused()
    expect(page.locator("#filter_error")).to_be_empty()
    field.press("Control+z")
    expect(written(page)).to_have_value("Age ge 3 and startswith(Name,'Ada')")


@pytest.mark.long
def test_an_unfinished_string_is_no_error_before_blur(page, field):
    problem = page.locator("#filter_error")
    stored = Held(page, "**/query/values/?name=Name")
    with page.expect_response(CHECK):
        field.fill("Name eq 'Ad")
    settle(page)
    stored.wait()
    expect(problem).to_be_empty()
    expect(field).not_to_have_attribute("aria-invalid", re.compile(""))
    with page.expect_response(CHECK):
        page.get_by_role("link", name="Code").focus()
    expect(problem).to_contain_text("The string has no closing quote.")
    # there are no suggestions after the focus has left either
    with page.expect_response("**/query/values/?name=Name"):
        stored.release()
    page.get_by_role("link", name="Add '").click()
    expect(written(page)).to_have_value("Name eq 'Ad'")


@pytest.mark.long
def test_the_builder_keeps_the_text_to_the_byte(page, field):
    field.fill(TEXT)
    box = open_builder(page)
    expect(box.locator(".clause")).to_have_count(3)
    expect(page).to_have_url(re.compile("by=rows"))
    expect(written(page)).to_have_value(TEXT)
    page.get_by_role("link", name="Text", exact=True).click()
    expect(box.locator(".clause")).to_have_count(0)
    expect(written(page)).to_have_value(TEXT)


@pytest.mark.long
def test_a_row_of_the_builder_is_written_by_keys(page, field):
    field.fill("PartitionKey eq 'se'")
    box = open_builder(page)
    expect(box.locator(".clause")).to_have_count(1)
    box.get_by_role("button", name="Condition").last.press("Enter")
    expect(box.get_by_label("Property").last).to_be_focused()
    page.keyboard.type("ag")
    expect(page.locator("#query-proposals [aria-selected='true']")).to_contain_text("Age")
    check_axe(page, "#query-card")
    page.keyboard.press("Tab")
    expect(box.get_by_label("Property").last).to_have_value("Age")
    expect(box.get_by_label("Type").last).to_have_value("Edm.Int32")
    box.get_by_label("Value").last.focus()
    with page.expect_response("**/query/rows/"):
        page.keyboard.type("7x")
    expect(box.get_by_text("Enter a whole number.")).to_be_visible()
    page.keyboard.press("Backspace")
    with page.expect_response(lambda response: "f=" in response.url and "Age" in response.url):
        page.keyboard.press("Enter")
    expect(entities(page)).to_have_count(1)
    expect(written(page)).to_have_value("PartitionKey eq 'se' and Age eq 7")
    check_reflow(page)
    box.get_by_role("button", name="Remove condition: Age").last.click()
    expect(box.locator(".clause")).to_have_count(1)
    expect(box.locator("button:focus")).to_have_count(1)
    expect(entities(page)).to_have_count(1)  # until it is run
    page.get_by_role("button", name="Run").click()
    expect(entities(page)).to_have_count(50)
    page.reload()  # the address is the whole state
    expect(box.locator(".clause")).to_have_count(1)


@pytest.mark.long
def test_on_a_phone_entities_are_a_list_and_the_query_a_sheet(open_page, admin, queried):
    page = open_page(TABLE, state=admin, width=390, height=844)
    rows = page.locator(".grid tbody tr")
    assert top_of(page, ".grid tbody tr") <= 150
    for text in ("00", "se", "Ada 0"):
        expect(rows.first.get_by_text(text, exact=True).first).to_be_visible()
    expect(page.get_by_role("link", name="Add entity")).to_be_in_viewport()
    expect(page.get_by_label("$filter")).to_be_hidden()
    check_axe(page, "main")
    check_reflow(page)

    page.get_by_role("button", name="Query").click()
    page.get_by_label("$filter").fill("Age ge 58")
    check_axe(page, "main")
    check_reflow(page)
    page.get_by_role("button", name="Run").click()
    expect(rows).to_have_count(2)
    expect(page.locator("#query-summary")).to_have_text("Age ge 58")
    expect(page.get_by_label("$filter")).to_be_hidden()

    # the order is chosen in the sheet
    page.get_by_role("button", name="Query").click()
    page.get_by_label("Sort").select_option("Age descending")
    expect(page).to_have_url(re.compile("sort=-Age"))
    expect(rows.first.get_by_text("Ada 59", exact=True).first).to_be_visible()
    # a tap opens an entity, or ticks it while several are selected
    expect(rows.first.get_by_role("checkbox")).to_be_hidden()
    page.get_by_role("button", name="Select", exact=True).click()
    rows.first.click()
    rows.last.click()
    expect(page.locator("[data-picked-count]")).to_have_text("2 selected")
    check_axe(page, "main")
    check_reflow(page)
    bar = page.locator("#selection").bounding_box()
    assert bar["height"] < 60
    page.get_by_role("button", name="Select", exact=True).click()
    expect(page.locator("#selection")).to_be_hidden()
    expect(rows.first.get_by_role("checkbox")).to_be_hidden()
    # the pages of the table, and what else can be done with it
    page.get_by_role("button", name="queried").click()
    expect(page.get_by_role("link", name="Schema")).to_be_in_viewport()
    expect(page.get_by_role("link", name="Export")).to_be_in_viewport()
    check_axe(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Schema")).to_be_hidden()

    # the grid as it is stays the choice of this browser
    page.get_by_role("link", name="Grid").click()
    expect(page.get_by_role("columnheader", name="PartitionKey")).to_be_visible()
    page.reload()
    expect(page.get_by_role("columnheader", name="PartitionKey")).to_be_visible()
    page.get_by_role("link", name="List").click()
    expect(page.get_by_role("columnheader", name="PartitionKey")).to_be_hidden()
    rows.first.click()
    expect(page.get_by_role("heading", name="59")).to_be_visible()


@pytest.mark.long
def test_cells_and_columns_say_something_to_the_query(open_page, admin, queried):
    page = open_page(TABLE + "?f=Age+ge+3", state=admin, width=1440)
    rows = page.locator(".grid tbody tr")
    page.locator("th[data-property=Age]").click()
    page.get_by_role("button", name="Sort descending").click()
    expect(rows.first).to_contain_text("Ada 59")
    expect(page.locator("th[data-property=Age]")).to_have_attribute("aria-sort", "descending")
    expect(page).to_have_url(re.compile("sort=-Age"))
    rows.nth(1).locator("td[data-property=Name]").click(button="right")
    page.get_by_role("button", name="Exclude this value").click()
    expect(rows.nth(1)).to_contain_text("Ada 57")
    expect(written(page)).to_have_value("Age ge 3 and Name ne 'Ada 58'")
    page.get_by_role("link", name="Reset to key order").click()
    expect(rows.first.locator("td[data-property=Age]")).to_have_text("3")
    expect(page.get_by_text("Sorted by Age")).to_have_count(0)
    page.go_back()
    expect(page.get_by_text("Sorted by Age")).to_have_count(1)
