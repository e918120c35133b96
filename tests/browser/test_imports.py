"""An import in a real browser: a file is dropped, mapped, checked, repaired, imported and undone."""

from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_on_a_phone

TABLES = "/ui/a/devstoreaccount1/"
ROWS = (
    "country;id;age;since\n"
    + "".join(f"se;{number};{number};28.11.2026\n" for number in range(400))
    + "tr;x;n/a;01.12.2026\n"
)
DROP = """([name, text]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], name));
    const options = { dataTransfer: carried, bubbles: true, cancelable: true };
    document.body.dispatchEvent(new DragEvent("drop", options));
}"""


def test_from_a_dropped_file_to_entities_and_back(open_page, admin, service, screenshots):
    name = "imported"
    page = open_page(TABLES, state=admin)
    page.evaluate(DROP, ["people.csv", ROWS])
    dialog = page.get_by_role("dialog", name="Import a file")
    expect(dialog).to_be_visible()
    check_axe(page, "dialog[open]")  # a modal dialog keeps the focus from the page
    dialog.get_by_label("Table name").fill(name)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name=f"Import into {name}")).to_be_visible()
    expect(page.get_by_label("Delimiter")).to_have_value(";")
    # the keys that are clear are chosen; others are built by pressing columns, also with the keyboard
    chosen = page.get_by_role("group", name="Columns of the RowKey")
    expect(chosen.get_by_role("button", name="id", exact=True)).to_have_attribute("aria-pressed", "true")
    chosen.get_by_role("button", name="id", exact=True).press("Enter")
    country = chosen.get_by_role("button", name="country", exact=True)
    country.press("Enter")
    expect(country).to_be_focused()
    chosen.get_by_role("button", name="id", exact=True).press("Enter")
    expect(page.get_by_role("cell", name="se-0")).to_be_visible()
    page.get_by_label("Separator").fill("_")
    page.keyboard.press("Tab")
    expect(page.get_by_role("cell", name="se_0")).to_be_visible()
    page.get_by_text("Advanced", exact=True).click()
    page.get_by_label("Template of the RowKey").fill("{country}-{id}")
    page.keyboard.press("Tab")
    expect(page.get_by_role("cell", name="se-0")).to_be_visible()
    expect(page.get_by_label("Template of the RowKey")).to_be_visible()

    # what was pressed keeps the focus, and takes it back
    page.get_by_role("button", name="Read as dates, day first (since)").press("Enter")
    undo = page.get_by_role("button", name="Undo (since)")
    expect(undo).to_be_focused()
    expect(page.get_by_text("dates, day first, UTC")).to_be_visible()
    undo.press("Enter")
    expect(page.get_by_role("button", name="Read as dates, day first (since)")).to_be_focused()
    page.keyboard.press("Enter")
    expect(undo).to_be_visible()
    page.get_by_role("button", name="Read as whole numbers (age)").click()
    expect(page.get_by_label("Values that do not fit")).to_be_visible()
    page.locator("#main").evaluate("it => (it.dataset.old = '')")
    page.get_by_role("button", name="Update preview").click()
    expect(page.locator("#main:not([data-old])").get_by_role("cell", name="se-0")).to_be_visible()
    check(page)
    check_on_a_phone(page, screenshots / "import-map-dark-390.png")

    page.get_by_role("button", name="Check all rows").click()
    expect(page.get_by_text("age is not of the type Int32.")).to_be_visible()
    check(page)
    check_on_a_phone(page, screenshots / "import-check-dark-390.png")
    page.get_by_role("button", name="Leave the value out").click()
    page.get_by_role("button", name="Import 401 rows").click()

    expect(page.locator("#job")).to_contain_text("finished")
    expect(page.locator("#job")).to_contain_text("401")
    check(page)
    check_on_a_phone(page, screenshots / "import-run-dark-390.png")
    assert len(list(service.get_table_client(name).list_entities())) == 401
    page.get_by_role("link", name="Open the table").click()
    expect(page.get_by_role("heading", name=name)).to_be_attached()
