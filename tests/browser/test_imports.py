"""An import in a real browser: a file is dropped, and buttons keep the focus while the page is drawn again."""

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_on_a_phone

pytestmark = pytest.mark.long
TABLES = "/ui/a/devstoreaccount1/"
ROWS = "country;id;age;since\n" + "".join(f"se;{number};{number};28.11.2026\n" for number in range(40))
DROP = """([name, text]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], name));
    const options = { dataTransfer: carried, bubbles: true, cancelable: true };
    document.body.dispatchEvent(new DragEvent("drop", options));
}"""


@pytest.fixture
def page(open_page, admin):
    """Open the page that maps columns, by dropping a file on the list of tables."""
    page = open_page(TABLES, state=admin)
    page.evaluate(DROP, ["people.csv", ROWS + "tr;x;n/a;01.12.2026\n"])
    dialog = page.get_by_role("dialog", name="Import a file")
    expect(dialog).to_be_visible()
    check_axe(page, "dialog[open]")  # a modal dialog keeps the focus from the page
    dialog.get_by_label("Table name").fill("imported")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Import into imported")).to_be_visible()
    return page


def test_a_dropped_file_is_checked_repaired_and_imported(page, service):
    page.get_by_role("button", name="Read as whole numbers (age)").click()
    expect(page.get_by_label("Values that do not fit")).to_be_visible()
    check(page)
    check_on_a_phone(page)
    page.get_by_role("button", name="Check all rows").click()
    expect(page.get_by_text("1 value of age isn't a whole number.")).to_be_visible()
    check_axe(page, "main")
    page.get_by_role("button", name="Skip this value").click()
    page.get_by_role("button", name="Import 41 rows").click()
    expect(page.locator("#job")).to_contain_text("finished")
    check_on_a_phone(page)
    assert len(list(service.get_table_client("imported").list_entities())) == 41


def test_pressed_buttons_keep_the_focus(page):
    chosen = page.get_by_role("group", name="Columns of the RowKey")
    country = chosen.get_by_role("button", name="country", exact=True)
    country.press("Enter")
    expect(country).to_have_attribute("aria-pressed", "true")
    expect(country).to_be_focused()
    read = page.get_by_role("button", name="Read as dates, day first (since)")
    read.press("Enter")
    undo = page.get_by_role("button", name="Undo (since)")
    expect(undo).to_be_focused()
    undo.press("Enter")
    expect(read).to_be_focused()
