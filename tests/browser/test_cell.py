"""Cells in a browser: types, files, conflicts, rows that are deleted and pasted, changes that wait."""

import re
from pathlib import Path

import pytest
from azure.data.tables import EdmType, EntityProperty, TableServiceClient
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe, intercept
from tests.waiting import wait_for

HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def cells(console):
    """Make a table for each test, and yield a client outside the console."""
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        service.delete_table("cells")
        table = service.create_table("cells")
        for name in ("ada", "alan", "grace", ""):
            table.create_entity(entity(name))
        yield table
        table.close()


def entity(name):
    return {
        "PartitionKey": "se" if name else "",
        "RowKey": name,
        "Name": HOSTILE,
        "Age": 36,
        "Big": EntityProperty(2**63 - 1, EdmType.INT64),
        "Balance": -0.0,
        "Ratio": float("nan"),
        "Score": 5.75,
        "Since": EntityProperty("2017-08-30T13:20:33.4139141Z", EdmType.DATETIME),
        "Photo": b"\x00\xff" * 8,
        "Settings": '{"theme": "dark", "big": 9007199254740993}',
    }


def at(path=""):
    return f"/ui/a/devstoreaccount1/t/cells/{path}"


def cell(page, name, of):
    row = page.locator("tr[data-key]", has=page.locator(f'td:text-is("{of}")'))
    return row.locator(f'td[data-property="{name}"]')


def open_editor(page, name, of="ada"):
    cell(page, name, of).dblclick()
    page.locator("#cell-editor").wait_for()


def closed(page):
    page.locator("#cell-editor").wait_for(state="detached")


def choose(page, type_):
    if page.locator("#cell-type").input_value() != f"Edm.{type_}":
        page.locator("#cell-type").select_option(f"Edm.{type_}")
    page.locator(f'#cell-editor [name="from"][value="Edm.{type_}"]').wait_for(state="attached")


ACCEPTED = [
    ("Int64", "-9223372036854775808", -(2**63)),
    ("DateTime", "2026-11-20 14:03:07.1234567Z", "2026-11-20T14:03:07.1234567Z"),
    ("String", "it's <b>\u202e", "it's <b>\u202e"),
]
REFUSED = [
    ("Int32", "2147483648", "out of range", "Use Int64"),
    ("DateTime", "1600-01-01", "between the years 1601 and 9999", None),
    ("Guid", "c9da", "32 hexadecimal digits", "Use String"),
]


@pytest.mark.long
def test_each_type_accepts_and_refuses(open_page, admin, cells):
    page = open_page(at(), state=admin)
    open_editor(page, "Age")
    check_axe(page, "#cell-editor")
    for type_, text, message, suggestion in REFUSED:
        choose(page, type_)
        page.locator("#cell-value").fill(text)
        page.locator("#cell-note", has_text=message).wait_for()
        expect(page.locator("#cell-value")).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#cell-value")).to_have_attribute("aria-describedby", "cell-note")
        if suggestion is not None:
            expect(page.get_by_role("button", name=suggestion)).to_be_visible()
        page.locator("#cell-value").fill("")
    page.keyboard.press("Escape")
    closed(page)
    for type_, text, value in ACCEPTED:
        cell(page, "Age", "ada").press("Enter")
        page.locator("#cell-editor").wait_for()
        page.locator("#cell-value").fill("")
        choose(page, type_)
        page.locator("#cell-value").fill(text)
        page.locator("#cell-value").press("Enter")
        closed(page)
        stored = cells.get_entity("se", "ada")["Age"]
        stored = stored.value if isinstance(stored, EntityProperty) else stored
        shown = getattr(stored, "tables_service_value", None) or stored
        assert str(shown) == str(value), type_
    expect(page.locator(":focus")).to_have_attribute("data-property", "Age")


@pytest.mark.long
def test_a_file_goes_in_and_comes_out_again(open_page, admin, cells, tmp_path):
    page = open_page(at(), state=admin)
    content = bytes(range(256)) * 8
    (tmp_path / "photo.bin").write_bytes(content)
    open_editor(page, "Photo")
    check_axe(page, "#cell-editor")
    page.locator("[data-cell-upload]").set_input_files(tmp_path / "photo.bin")
    page.locator("#cell-note", has_text="2,048 bytes").wait_for()
    page.get_by_role("button", name="Save", exact=True).click()
    closed(page)
    assert cells.get_entity("se", "ada")["Photo"] == content
    open_editor(page, "Photo")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert Path(download.value.path()).read_bytes() == content


def test_typing_starts_an_edit_and_undo_reverts_it(open_page, admin, cells):
    page = open_page(at(), state=admin)
    before = dict(cells.get_entity("se", "ada"))
    cell(page, "Age", "ada").click()
    page.keyboard.type("1")
    page.keyboard.type("07")
    page.locator("#cell-editor").wait_for()
    page.keyboard.press("Enter")
    closed(page)
    changed = dict(cells.get_entity("se", "ada"))
    assert repr(sorted(changed.items())) == repr(sorted({**before, "Age": 107}.items()))
    page.get_by_text("Age saved", exact=True).wait_for()
    page.get_by_role("button", name="Undo").dblclick()
    page.locator("td:text-is('36')").nth(3).wait_for()
    assert cells.get_entity("se", "ada")["Age"] == 36


def test_a_concurrent_change_of_a_row_is_a_conflict(open_page, admin, cells):
    page = open_page(at(), state=admin)

    def save_late(theirs, mine):
        open_editor(page, "Age")
        cells.update_entity({"PartitionKey": "se", "RowKey": "ada", "Age": theirs}, mode="merge")
        page.locator("#cell-value").fill(str(mine))
        page.locator("#cell-value").press("Enter")
        page.locator(".cell-conflict").wait_for()

    save_late(38, 40)
    assert page.locator(".cell-conflict dd").all_inner_texts()[:3] == ["36", "38", "40"]
    check_axe(page, ".cell-conflict")
    page.get_by_role("link", name="Keep theirs").click()
    closed(page)
    expect(cell(page, "Age", "ada")).to_have_text("38", use_inner_text=True)
    save_late(39, 41)
    page.get_by_role("button", name="Save mine").click()
    closed(page)
    assert cells.get_entity("se", "ada")["Age"] == 41


@pytest.mark.long
def test_keys_walk_through_the_editor_and_back_to_its_cell(open_page, admin, cells):
    page = open_page(at(), state=admin)
    age = cell(page, "Age", "alan")
    age.click()
    page.keyboard.press("F2")
    page.locator("#cell-editor").wait_for()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator("#cell-type")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Alt+ArrowDown")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('[data-save]')")
    page.keyboard.press("Tab")
    expect(page.locator("#cell-value")).to_be_focused()
    page.keyboard.press("Escape")
    closed(page)
    expect(age).to_be_focused()


@pytest.mark.long
def test_tab_and_arrows_save_and_move_on(open_page, admin, cells):
    page = open_page(at(), state=admin)
    open_editor(page, "Age", "alan")
    page.locator("#cell-value").fill("50")
    page.keyboard.press("Tab")
    closed(page)
    page.locator("td:text-is('50')").wait_for()
    expect(page.locator(":focus")).to_have_attribute("data-property", "Big")
    # any character begins a new value, also one that is a shortcut elsewhere
    cell(page, "Name", "alan").click()
    page.keyboard.type("dove?")
    page.locator("#cell-editor").wait_for()
    page.keyboard.press("ArrowRight")
    closed(page)
    expect(page.locator(":focus")).to_have_attribute("data-property", "Age")
    assert cells.get_entity("se", "alan")["Name"] == "dove?"


@pytest.mark.long
def test_delete_removes_a_property_and_typing_restores_it(open_page, admin, cells):
    page = open_page(at(), state=admin)
    cell(page, "Age", "alan").click()
    page.keyboard.press("Delete")
    page.get_by_text("Age removed").wait_for()
    assert "Age" not in dict(cells.get_entity("se", "alan"))
    absent = page.get_by_role("gridcell", name="not set")
    expect(absent).to_have_count(1)
    assert absent.locator("span").evaluate("it => getComputedStyle(it).opacity") == "0"
    page.keyboard.type("8")
    page.locator("#cell-editor").wait_for()
    page.keyboard.press("Enter")
    closed(page)
    assert cells.get_entity("se", "alan")["Age"] == 8


def test_delete_removes_values_and_shift_deletes_rows(open_page, admin, cells):
    def keys():
        return {entity["RowKey"] for entity in cells.list_entities()}

    page = open_page(at(), state=admin)
    everyone = keys()
    page.locator("tr[data-key] input[name=key]").nth(0).check()
    page.keyboard.press("ArrowRight")
    cell(page, "Age", "alan").click()
    page.keyboard.press("Delete")
    page.get_by_text("Age removed").wait_for()
    page.locator("td[data-system=RowKey]:text-is('alan')").click()
    page.keyboard.press("Delete")
    page.get_by_text("Shift+Delete deletes the entity").first.wait_for()
    assert keys() == everyone
    # the ticked row, from its box
    page.locator("tr[data-key] input[name=key]").nth(0).focus()
    page.keyboard.press("Delete")
    page.get_by_text("Deleted 1 entity").wait_for()
    assert len(keys()) == len(everyone) - 1
    page.locator("tr[data-key] input[name=key]").nth(0).focus()  # no field in which keys are typed
    page.keyboard.press("Control+z")
    wait_for(lambda: keys() == everyone)
    expect(page.locator("tr[data-key]")).to_have_count(len(everyone))
    # without a selection, the row of the cell
    cell(page, "Age", "alan").click()
    page.keyboard.press("Shift+Delete")
    wait_for(lambda: keys() == everyone - {"alan"})


@pytest.mark.long
def test_composed_text_and_a_reload(open_page, admin, cells):
    page = open_page(at(), state=admin)
    name = cell(page, "Name", "alan")
    field = page.locator("#cell-value")
    name.click()
    composer = page.context.new_cdp_session(page)
    composer.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    expect(name).to_have_attribute("data-composed", "ni")
    composer.send("Input.insertText", {"text": "你"})
    expect(field).to_have_value("你")
    expect(name).to_have_text(HOSTILE)
    page.keyboard.insert_text("好")
    # the editor is open again after a reload, and knows what changed meanwhile
    cells.update_entity({"PartitionKey": "se", "RowKey": "alan", "Name": "theirs"}, mode="merge")
    page.reload()
    expect(field).to_have_value("你好")
    expect(field).to_be_focused()
    field.press("Enter")
    page.locator(".cell-conflict").wait_for()
    page.get_by_role("button", name="Save mine").click()
    closed(page)
    assert cells.get_entity("se", "alan")["Name"] == "你好"
    page.reload()
    page.keyboard.press("e")
    expect(page.locator("td:focus, th:focus")).to_have_count(1)
    expect(field).to_have_count(0)
    # text that no key types, such as an emoji
    name.click()
    page.keyboard.insert_text("🦊")
    expect(field).to_have_value("🦊")
    page.keyboard.press("Escape")
    closed(page)


def box(page, selector):
    return page.locator(selector).first.bounding_box()


@pytest.mark.long
def test_the_editor_overlays_its_cell_without_layout_shift(open_page, admin, cells):
    page = open_page(at(), state=admin, width=1280, height=720)
    for name, least, is_number in (("Name", 312, False), ("Age", 264, True), ("Since", 312, False)):
        cell(page, name, "alan").click()
        where = cell(page, name, "alan").bounding_box()
        around = [box(page, selector) for selector in (".grid-region", ".pager", ".grid tbody tr")]
        assert cell(page, name, "alan").evaluate("it => getComputedStyle(it).outlineWidth") == "2px"
        page.keyboard.press("F2")
        page.locator("#cell-editor").wait_for()
        layer = page.locator(".cell-layer")
        editor_box, field = layer.bounding_box(), box(page, "#cell-value")
        assert editor_box["width"] >= max(least, where["width"])
        # the text begins, or of a number ends, where it did, on the same line
        assert abs(field["y"] + field["height"] / 2 - where["y"] - (where["height"] - 1) / 2) <= 1
        padding = page.locator("#cell-value").evaluate("it => parseFloat(getComputedStyle(it).paddingLeft)")
        if is_number:
            assert field["x"] + field["width"] - padding == where["x"] + where["width"] - 12
        elif name == "Name":  # the other one has no room on the right
            assert field["x"] + padding == where["x"] + 12
        assert page.locator("#cell-value").evaluate("it => it.scrollWidth <= it.clientWidth")
        assert [box(page, selector) for selector in (".grid-region", ".pager", ".grid tbody tr")] == around
        page.keyboard.press("Escape")
        closed(page)
    # no room below: the tools are above; on scroll it stays at its cell
    page.set_viewport_size({"width": 1280, "height": 560})
    cell(page, "Name", "grace").scroll_into_view_if_needed()
    open_editor(page, "Name", "grace")
    page.locator(".grid-region").evaluate("it => it.scrollBy(40, 0)")
    page.wait_for_function(
        "() => { const cell = document.querySelector('[data-editing] td[data-property=Name]').getBoundingClientRect();"
        " return document.querySelector('#cell-value').getBoundingClientRect().left - cell.left === 2; }"
    )


def stored(cells, name):
    return [dict(cells.get_entity("se", key)).get(name) for key in ("ada", "alan", "grace")]


@pytest.mark.long
def test_a_range_of_cells_is_pasted_copied_and_filled(open_page, admin, cells):
    page = open_page(at(), state=admin, permissions=["clipboard-read", "clipboard-write"])
    cell(page, "Age", "ada").click()
    paste(page, "1\n2\n3")
    page.get_by_text("Changed 3 cells").wait_for()
    assert stored(cells, "Age") == [1, 2, 3]
    cell(page, "Age", "ada").click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(page.locator('td[aria-selected="true"]')).to_have_count(3)
    expect(page.locator("#said")).to_have_text("3 cells selected")
    # a colleague's change meanwhile leaves them selected
    cells.update_entity({"PartitionKey": "se", "RowKey": "alan", "Note": "x"}, mode="merge")
    page.evaluate("document.dispatchEvent(new CustomEvent('grid:changed', { detail: { keys: [] } }))")
    expect(page.locator("td[data-property='Note']").first).to_be_visible()
    expect(page.locator('td[aria-selected="true"]')).to_have_count(3)
    page.keyboard.press("Control+c")
    page.get_by_text("Copied", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()").split() == ["1", "2", "3"]
    page.keyboard.press("Control+d")
    page.get_by_text("Changed 2 cells").wait_for()
    assert stored(cells, "Age") == [1, 1, 1]
    page.keyboard.press("Control+z")
    page.get_by_text("Reverted 2 entities").wait_for()
    assert stored(cells, "Age") == [1, 2, 3]


@pytest.mark.long
def test_a_paste_with_a_wrong_value_changes_nothing(open_page, admin, cells):
    page = open_page(at(), state=admin)
    cell(page, "Age", "ada").click()
    paste(page, "4\nfive")
    page.get_by_text("Enter a whole number. Nothing was changed.").wait_for()
    assert stored(cells, "Age") == [36, 36, 36]


@pytest.mark.long
def test_space_toggles_a_boolean(open_page, admin, cells):
    cells.update_entity({"PartitionKey": "se", "RowKey": "ada", "Active": True}, mode="merge")
    page = open_page(at(), state=admin)
    cell(page, "Active", "ada").click()
    page.keyboard.press("Space")
    page.get_by_text("Active saved").wait_for()
    assert stored(cells, "Active")[0] is False
    expect(page.locator("[data-picked-count]")).to_be_hidden()
    expect(page.locator(":focus")).to_have_attribute("data-property", "Active")


@pytest.mark.long
def test_a_value_is_looked_at_whole(open_page, admin, cells):
    page = open_page(at(), state=admin)
    intercept(page, "**/cells/value/?*property=Name*", lambda _: None)  # never answered
    cell(page, "Name", "ada").click()
    with page.expect_request("**/cells/value/?*"):
        page.keyboard.press("Alt+v")
    cell(page, "Settings", "ada").click()
    with page.expect_event("requestfailed", lambda it: "property=Name" in it.url):  # it would come too late
        page.keyboard.press("Alt+v")
    viewer = page.locator("#viewer")
    viewer.get_by_text("9007199254740993").wait_for()
    check_axe(page, "#viewer")
    viewer.get_by_role("link", name="Plain").click()
    page.locator("#viewer pre").wait_for()
    page.keyboard.press("Escape")
    expect(page.locator(":focus")).to_have_attribute("data-property", "Settings")
    cell(page, "Photo", "ada").click()
    page.keyboard.press("Alt+v")
    page.locator("#viewer .hex").wait_for()


def test_pasted_rows_are_staged(open_page, admin, cells):
    page = open_page(at(), state=admin)
    cell(page, "Age", "ada").click()
    rows = [
        ["PartitionKey", "RowKey", "Name", "Age", "Got"],
        ["se", "ada", HOSTILE, "37", "true"],
        ["se", "new", "N", "1", "false"],
    ]
    paste(page, "\n".join("\t".join(row) for row in rows))
    form = page.locator("#paste")
    form.get_by_text("1 insert").wait_for()
    expect(form.locator("img")).to_have_count(0)
    check_axe(page, "#paste")
    assert cells.get_entity("se", "ada")["Age"] == 36
    page.get_by_role("button", name="Insert 1, update 1").dblclick()
    page.get_by_text("Pasted 2 entities").wait_for()
    assert (cells.get_entity("se", "ada")["Age"], cells.get_entity("se", "new")["Got"]) == (37, False)
    page.get_by_role("button", name="Undo").click()
    page.locator("td:text-is('new')").wait_for(state="detached")
    assert cells.get_entity("se", "ada")["Age"] == 36


@pytest.mark.long
def test_a_single_pasted_value_goes_into_the_editor(open_page, admin, cells):
    page = open_page(at(), state=admin)
    cell(page, "Age", "ada").click()
    paste(page, "77")
    page.locator("#cell-editor").wait_for()
    expect(page.locator("#cell-value")).to_have_value("77")


def paste(page, text):
    page.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text/plain', text);"
        " document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true})); }",
        text,
    )


@pytest.fixture
def staging(open_page, admin, cells):
    """Open the grid of a user who stages changes until they are saved."""
    page = open_page("/ui/me/", state=admin)

    def choose_mode(mode):
        page.goto("/ui/me/")
        page.locator(f'[name="edit_mode"][value="{mode}"]').check()
        page.locator('[name="edit_mode"]').first.evaluate("field => field.form.requestSubmit()")
        page.locator(".toast", has_text="Saved your preferences.").wait_for()

    choose_mode("staged")
    page.goto(at())
    yield page
    choose_mode("direct")


def change(page, of, text):
    open_editor(page, "Age", of)
    page.locator("#cell-value").fill(text)
    page.locator("#cell-value").press("Enter")
    closed(page)


@pytest.mark.long
def test_staged_changes_are_reviewed_before_they_are_saved(staging, cells):
    for of, text in (("ada", "1"), ("alan", "2"), ("grace", "3")):
        change(staging, of, text)
    expect(staging.locator("#staged")).to_have_text(re.compile("^3"), use_inner_text=True)
    assert cells.get_entity("se", "ada")["Age"] == 36
    staging.reload()
    expect(cell(staging, "Age", "ada")).to_have_text("1", use_inner_text=True)
    cells.update_entity({"PartitionKey": "se", "RowKey": "alan", "Name": "x"}, mode="merge")
    staging.get_by_role("button", name="Save all").click()
    conflict = staging.locator("#review").get_by_text("changed while you were editing")
    conflict.wait_for()
    check_axe(staging, "#review")
    staging.get_by_role("button", name="Overwrite with mine").click()
    conflict.wait_for(state="detached")
    staging.locator("#review tr", has_text="grace").get_by_role("button", name="Discard", exact=True).click()
    staging.locator("#review tr", has_text="grace").wait_for(state="detached")
    staging.locator("#review [data-close]").click()
    staging.get_by_role("button", name="Save all").click()
    staging.get_by_text("Saved 2 changes").wait_for()
    assert stored(cells, "Age") == [1, 2, 36]


@pytest.mark.long
def test_a_change_during_a_save_stays_staged(staging, cells):
    change(staging, "ada", "1")
    saving = Held(staging, "**/t/cells/staged/")
    staging.get_by_role("button", name="Save all").click()
    saving.wait()
    change(staging, "grace", "4")
    saving.release()
    staging.get_by_text("Saved 1 change").wait_for()
    assert stored(cells, "Age") == [1, 36, 36]
    expect(staging.locator("#staged")).to_have_text(re.compile("^1"), use_inner_text=True)
    expect(cell(staging, "Age", "grace")).to_have_text("4", use_inner_text=True)
