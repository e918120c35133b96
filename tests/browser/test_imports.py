"""An import in a real browser: a file is dropped, mapped, checked, repaired, imported and undone."""

from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_on_a_phone

TABLES = "/ui/a/devstoreaccount1/"
ROWS = "country;id;age\n" + "".join(f"se;{number};{number}\n" for number in range(400)) + "tr;x;n/a\n"
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
    page.get_by_label("PartitionKey").fill("{country}")
    page.get_by_label("RowKey").fill("{country}-{id}")
    page.get_by_label("Type of age").select_option("Int32")
    page.keyboard.press("Tab")
    expect(page.get_by_role("cell", name="se-0")).to_be_visible()
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
