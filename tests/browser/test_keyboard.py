"""Keyboard input goes to the focused element: before a cell's editor appears, under a dialog, without a connection."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe

PASSWORD = "a password of many words"
GRID = "/ui/a/devstoreaccount1/t/typed/"
EDITOR = "**/t/typed/cell/?*"  # the address that answers with a cell's editor
TYPED = ".cell-layer textarea, .cell-layer input.cell-value"  # where a cell's text is typed


@pytest.fixture
def typed(service):
    service.delete_table("typed")
    with service.create_table("typed") as table:
        for number in range(3):
            table.create_entity(
                {
                    "PartitionKey": "se",
                    "RowKey": f"{number}",
                    "Name": "Ada",
                    "Notes": "x" * 2000,
                    "Age": 36,
                    "Flag": True,
                }
            )
        yield table


@pytest.fixture
def page(pool, console, admin, typed):
    """Open a grid of the admin, in which requests may fail."""
    page = pool.take(base_url=console.url, state=admin, width=1440, locale="en-US", reduced_motion="reduce")
    page.goto(GRID)
    yield page
    page.context.set_offline(False)
    pool.give_back(page)


# commands that could handle a key at a target, except those that only watch all keys
COMMANDS = """
async selector => {
    const main = document.querySelector('script[src$="console/main.js"]').src;
    const {commands} = await import(main.replace("main.js", "site/commands.js"));
    const target = document.querySelector(selector);
    if (!target) throw new Error(selector);
    const taken = new Map();
    for (const {key, place, rank} of commands) {
        if (key === "Any" || !place({target, key})) continue;
        taken.set(`${rank} ${key}`, [...(taken.get(`${rank} ${key}`) ?? []), place.name]);
    }
    return [...taken].filter(([, places]) => places.length > 1).map(([key, places]) => `${key}: ${places}`);
}
"""
TARGETS = [
    "body", '[data-grid] td[data-property="Name"]', '[data-grid] td[data-property="Flag"]', "[data-grid] td.handle",
    "[data-grid] th[data-property]", '[data-grid] td[data-system="Timestamp"]', ".grid-region", "#filter", "#drawer",
    "#cell-menu", "#unsaved", "[data-palette]",
]  # fmt: skip


def cell(page, name, row=0):
    return page.locator(f'[data-grid] tbody tr:nth-child({row + 1}) td[data-property="{name}"]')


def query(page):
    return page.get_by_label("$filter")


def expire(page):
    page.context.clear_cookies(name="tablero_session")


def type_signed_out(page):
    """Type into a cell, whose editor asks for a password once all is typed."""
    expire(page)
    editor = Held(page, EDITOR)
    cell(page, "Name").click()
    page.keyboard.type("Hi")
    editor.release()


def names(table):
    return [entity["Name"] for entity in table.list_entities()]


def closed(page):
    expect(page.locator(".cell-layer, .cell-dialog")).to_have_count(0)


@pytest.mark.long
@pytest.mark.parametrize(("way", "ending"), [("typed", ""), ("filled", "Enter")])
def test_a_password_typed_over_a_cell_stays_in_its_dialog(page, typed, way, ending):
    sent = []
    page.on("request", lambda request: sent.append((request.url, request.post_data or "")))
    expire(page)
    editor = Held(page, EDITOR)  # the request for the password comes when the text is typed
    cell(page, "Name").click()
    page.keyboard.type("Hi")
    if ending:
        page.keyboard.press(ending)
    editor.release()
    dialog = page.locator("dialog#sign-in")
    password = dialog.get_by_label("Password")
    expect(password).to_be_focused()
    if way == "typed":
        page.keyboard.type(PASSWORD)
    else:
        password.fill(PASSWORD)
    expect(password).to_have_value(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Hi")
    expect(page.locator(TYPED)).to_be_focused()
    page.get_by_role("button", name="Save", exact=True).wait_for()
    assert names(typed) == ["Ada"] * 3  # nothing is saved without a key pressed in the editor
    page.keyboard.press("Enter")
    page.get_by_text("Name saved", exact=True).wait_for()
    assert names(typed) == ["Hi", "Ada", "Ada"]
    # only the form to sign in sent it, as a field would be encoded too
    words = ("password of many", "password+of+many", "password%20of%20many")
    told = [(url, body) for url, body in sent if any(word in url + body for word in words)]
    assert told
    assert all("/login/" in url and 'name="property"' not in body for url, body in told), told
    expect(page).not_to_have_url(re.compile("password"))


def test_typing_goes_on_below_a_dialog_to_sign_in_that_appears(page, typed):
    expire(page)
    dialog = page.locator("dialog#sign-in")
    cell(page, "Name").click()
    page.keyboard.type("Hi there, ", delay=60)
    expect(dialog).to_be_visible()
    page.keyboard.type("soo", delay=60)  # before the user has seen it
    page.keyboard.press("Backspace")
    page.keyboard.type("on", delay=60)
    password = dialog.get_by_label("Password")
    expect(password).to_be_focused()
    expect(password).to_have_value("")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Hi there, soon")
    page.keyboard.press("Enter")
    page.get_by_text("Name saved", exact=True).wait_for()
    assert names(typed) == ["Hi there, soon", "Ada", "Ada"]


@pytest.mark.long
def test_a_sign_in_in_another_tab_does_not_end_the_typing_of_a_password(page, typed):
    session = page.context.cookies()
    type_signed_out(page)
    dialog = page.locator("dialog#sign-in")
    expect(dialog.get_by_label("Password")).to_be_focused()
    page.keyboard.type("half a pass")
    page.context.add_cookies(session)
    with page.expect_response("**/login/done/"), page.context.expect_page():
        page.evaluate("open(location)")
    page.bring_to_front()
    page.keyboard.type("word")
    expect(dialog.get_by_label("Password")).to_have_value("half a password")
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Hi")
    assert names(typed) == ["Ada"] * 3


@pytest.mark.long
def test_a_sign_in_given_up_keeps_the_text_and_enter_asks_again(page, typed):
    type_signed_out(page)
    dialog = page.locator("dialog#sign-in")
    expect(dialog.get_by_label("Password")).to_be_focused()
    page.keyboard.type("half a pass")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(page.locator(TYPED)).to_have_value("Hi")
    expect(page.locator(TYPED)).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Hi")
    assert names(typed) == ["Ada"] * 3
    page.keyboard.press("Escape")
    closed(page)
    expect(cell(page, "Name")).to_be_focused()


@pytest.mark.long
def test_a_failed_editor_is_retried_by_touch(page, typed):
    type_signed_out(page)
    dialog = page.locator("dialog#sign-in")
    expect(dialog.get_by_label("Password")).to_be_focused()
    page.keyboard.press("Escape")
    layer = page.locator(".cell-layer")
    check_axe(page, ".cell-layer")
    layer.get_by_role("button", name="Retry").click()
    expect(dialog.get_by_label("Password")).to_be_focused()
    expect(layer.get_by_role("button", name="Retry")).to_be_hidden()
    page.keyboard.press("Escape")
    layer.get_by_role("button", name="Cancel").click()
    closed(page)
    expect(cell(page, "Name")).to_be_focused()


@pytest.mark.long
def test_a_click_in_the_sign_in_dialog_does_not_save_the_editor_below(page, typed):
    cell(page, "Name").dblclick()
    page.locator("#cell-editor").wait_for()
    expire(page)
    with page.expect_response("**/cell/check/"):  # while it is typed: opens no dialog
        page.locator(TYPED).fill("Half")
    page.locator("#cell-type").select_option("Edm.Int32")
    dialog = page.locator("dialog#sign-in")
    dialog.get_by_label("Password").click()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    page.locator('#cell-editor [name="from"][value="Edm.Int32"]').wait_for(state="attached")
    expect(page.locator(TYPED)).to_have_value("Half")
    expect(page.locator(TYPED)).to_be_focused()
    page.keyboard.press("Escape")
    closed(page)
    page.reload()
    assert names(typed) == ["Ada"] * 3


@pytest.mark.long
def test_without_a_connection_every_field_takes_its_keys(page, typed):
    page.context.set_offline(True)
    cell(page, "Name").click()
    page.keyboard.type("Hi")
    trouble = page.locator(".trouble")
    expect(trouble).to_contain_text("What you typed is still on this page")
    page.keyboard.type(" there")
    page.keyboard.press("Enter")  # asks again, in vain
    expect(page.locator(TYPED)).to_have_value("Hi there")
    trouble.wait_for()
    check_axe(page, ".trouble")
    query(page).click()
    page.keyboard.type("Age gt 1")
    expect(page.locator("#filter")).to_have_value("Age gt 1")
    page.keyboard.press("Control+K")
    page.keyboard.type("people")
    expect(page.locator("#palette input")).to_have_value("people")
    page.keyboard.press("Escape")
    # another cell takes its own text
    cell(page, "Name", 1).click()
    page.keyboard.type("You")
    expect(page.locator(TYPED).nth(1)).to_have_value("You")
    page.keyboard.press("Escape")
    expect(page.locator(TYPED)).to_have_count(1)
    page.context.set_offline(False)
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Hi there")
    expect(cell(page, "Name", 1)).to_be_focused()
    assert names(typed) == ["Ada"] * 3
    page.locator(TYPED).press("Enter")
    page.get_by_text("Name saved", exact=True).wait_for()
    assert names(typed) == ["Hi there", "Ada", "Ada"]


@pytest.mark.long
def test_a_late_editor_does_not_take_the_focus(page, typed):
    held = Held(page, EDITOR)
    cell(page, "Name").click()
    page.keyboard.press("F2")
    query(page).click()
    page.keyboard.type("Age ")
    held.release()
    page.keyboard.type("gt 1")
    expect(page.locator("#filter")).to_have_value("Age gt 1")
    closed(page)

    # a dialog that opens ends the waiting: an Enter before it saves nothing
    held = Held(page, EDITOR)
    cell(page, "Name").click()
    page.keyboard.type("Hi")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+K")
    page.keyboard.type("people")
    with page.expect_response(EDITOR):
        held.release()
    expect(page.locator("#palette input")).to_have_value("people")
    expect(page.locator("#palette input")).to_be_focused()
    page.keyboard.press("Escape")
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Hi")
    expect(page.locator(TYPED)).to_be_focused()
    page.keyboard.press("Escape")
    closed(page)

    # the editor of a long value is a modal dialog, which would take the keyboard: it waits for Enter
    held = Held(page, EDITOR)
    cell(page, "Notes").click()
    page.keyboard.type("Long")
    query(page).focus()
    with page.expect_response(EDITOR):
        held.release()
    page.keyboard.type(" ")
    expect(page.locator(TYPED)).to_have_value("Long")
    expect(page.locator("dialog:modal")).to_have_count(0)
    page.locator(TYPED).press("Enter")
    page.locator(".cell-dialog #cell-editor").wait_for()
    expect(page.locator("#cell-value")).to_have_value("Long")
    page.keyboard.press("Escape")
    closed(page)
    assert names(typed) == ["Ada"] * 3


def test_text_of_several_cells_typed_faster_than_editors_come(page, typed):
    held = Held(page, EDITOR)
    cell(page, "Name").click()
    page.keyboard.type("two words  here")
    expect(page.locator(TYPED)).to_have_value("two words  here")
    cell(page, "Age").click()  # leaves the first as it leaves an editor
    page.keyboard.type("40 ")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    held.release()
    page.get_by_text("Age saved", exact=True).wait_for()
    closed(page)
    expect(cell(page, "Age")).to_be_focused()
    stored = typed.get_entity("se", "0")
    assert (stored["Name"], stored["Age"]) == ("two words  here", 40)
    expect(page.locator("[data-grid] [aria-selected=true]")).to_have_count(0)
    expect(page.locator("#selection[data-picked]")).to_have_count(0)


@pytest.mark.long
def test_composed_and_pasted_text_before_the_editor(page, typed):
    held = Held(page, EDITOR)
    cell(page, "Name").click()
    page.keyboard.type("a")
    composer = page.context.new_cdp_session(page)
    composer.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    with page.expect_response(EDITOR):
        held.release()
    composer.send("Input.insertText", {"text": "你"})
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("a你")
    page.keyboard.press("Escape")
    closed(page)

    held = Held(page, EDITOR)
    cell(page, "Name").click()
    page.keyboard.press("F2")
    page.keyboard.insert_text(" pasted")
    held.release()
    page.locator("#cell-editor").wait_for()
    expect(page.locator(TYPED)).to_have_value("Ada pasted")
    page.keyboard.press("Enter")
    page.get_by_text("Name saved", exact=True).wait_for()
    assert names(typed) == ["Ada pasted", "Ada", "Ada"]


@pytest.mark.long
def test_typing_while_a_cell_is_saved_goes_to_the_next_cell(page, typed):
    saving = Held(page, "**/t/typed/cell/")
    cell(page, "Name").click()
    page.keyboard.type("Grace")
    page.locator("#cell-editor").wait_for()
    page.keyboard.press("ArrowDown")
    saving.wait()
    expect(cell(page, "Name", 1)).to_be_focused()  # while the first is saved
    page.keyboard.type("Al")
    saving.release()
    expect(cell(page, "Name")).to_have_text("Grace", use_inner_text=True)
    page.keyboard.type("an")
    page.keyboard.press("Enter")
    closed(page)
    expect(cell(page, "Name", 1)).to_be_focused()
    assert names(typed) == ["Grace", "Alan", "Ada"]

    # more of the same text
    cell(page, "Name", 2).click()
    page.keyboard.type("Bo")
    page.locator("#cell-editor").wait_for()
    saving = Held(page, "**/t/typed/cell/")
    page.keyboard.press("Enter")
    saving.wait()
    page.keyboard.type("b")
    saving.release()
    expect(cell(page, "Name", 2)).to_have_text("Bo", use_inner_text=True)
    expect(page.locator(TYPED)).to_have_value("Bob")
    assert names(typed) == ["Grace", "Alan", "Bo"]
    page.keyboard.press("Enter")
    closed(page)
    assert names(typed) == ["Grace", "Alan", "Bob"]


@pytest.mark.long
def test_after_a_reconnection_the_editor_saves(page, typed):
    def save():
        page.get_by_role("button", name="Save", exact=True).click()

    for row, act in enumerate([lambda: page.locator(TYPED).press("Enter"), save]):
        cell(page, "Name", row).dblclick()
        page.locator("#cell-editor").wait_for()
        page.context.set_offline(True)
        page.locator(TYPED).fill("Offline")
        page.keyboard.press("Enter")
        page.locator(".trouble").wait_for()
        page.keyboard.type(", then more")
        page.context.set_offline(False)
        expect(page.locator(".trouble")).to_contain_text("Connected again")
        act()
        expect(page.get_by_text("Name saved", exact=True)).to_have_count(row + 1)
        closed(page)
        expect(page.locator(".trouble")).to_have_count(0)
    assert names(typed) == ["Offline, then more", "Offline, then more", "Ada"]


@pytest.mark.long
def test_keys_under_a_dialog_are_not_shortcuts(page, typed):
    cell(page, "Age").click()
    page.keyboard.press("Delete")
    page.get_by_text("Age removed", exact=True).wait_for()
    expire(page)
    page.keyboard.type("1")
    dialog = page.locator("dialog#sign-in")
    expect(dialog.get_by_label("Password")).to_be_focused()
    page.evaluate("document.activeElement.blur()")  # as when the part with the focus is exchanged
    for key in (*"?/gke", "Control+z", "Alt+n"):
        page.keyboard.press(key)
    dialog.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    expect(page.locator(TYPED)).to_have_value("1")
    expect(page.locator("dialog:modal")).to_have_count(0)
    expect(page.locator("#drawer")).to_be_hidden()
    expect(page).to_have_url(re.compile(re.escape(GRID) + "$"))
    assert "Age" not in typed.get_entity("se", "0")


@pytest.mark.long
def test_late_parts_do_not_take_the_keyboard_from_a_field(page, typed):
    drawer = Held(page, "**/t/typed/entity/**")
    page.locator("a[data-drawer]").first.click()
    query(page).click()
    page.keyboard.type("Age ")
    drawer.release()
    page.locator("#drawer").get_by_label("Name", exact=True).wait_for()
    page.keyboard.type("gt 1")
    expect(page.locator("#filter")).to_have_value("Age gt 1")
    page.locator("[data-drawer-close]").click()

    value = Held(page, "**/t/typed/value/**")
    cell(page, "Notes").click()
    page.keyboard.press("Alt+v")
    query(page).click()
    value.release()
    expect(page.locator("#part-dialog h2")).to_be_focused()  # no button that a key would press
    page.keyboard.press("Escape")

    copied = Held(page, "**/t/typed/copy/**")
    cell(page, "Name").click()
    page.keyboard.press("Control+c")
    query(page).click()
    copied.release()
    page.locator("#toasts [data-toast]").wait_for()
    page.keyboard.type(" or Age lt 0")
    expect(page.locator("#filter")).to_have_value("Age gt 1 or Age lt 0")


@pytest.mark.long
def test_background_requests_open_no_sign_in_dialog(page, typed):
    addresses = []
    page.on("request", lambda request: addresses.append(request.url))
    query(page).click()
    expire(page)
    with page.expect_response(lambda answer: answer.status == 401):
        # seen live
        typed.upsert_entity({"PartitionKey": "se", "RowKey": "1", "Name": "theirs"}, mode="merge")
    with page.expect_response("**/query/check/"):
        page.keyboard.type("Age gt 1")
    # by its answer, a form to sign in would have been asked for
    page.evaluate("fetch('/ui/healthz').then(answer => answer.status)")
    assert not [address for address in addresses if "/login/" in address]
    expect(page.locator("#filter")).to_have_value("Age gt 1")


def test_each_key_has_one_meaning_per_place(page):
    cell(page, "Name").click()
    names = page.evaluate(
        """async () => {
            const main = document.querySelector('script[src$="console/main.js"]').src;
            const {commands} = await import(main.replace("main.js", "site/commands.js"));
            return commands.map(({key, place}) => `${place.name} ${key}`);
        }"""
    )
    assert len(names) > 80
    assert sorted(set(names)) == sorted(names)
    for target in TARGETS:
        assert page.evaluate(COMMANDS, target) == [], target
    page.keyboard.press("Enter")
    page.locator("#cell-editor").wait_for()
    for target in ("#cell-editor #cell-value", "#cell-editor #cell-type", "#cell-editor [data-save]"):
        assert page.evaluate(COMMANDS, target) == [], target


def search(page, text):
    page.keyboard.press("Control+K")
    page.locator("#palette input").fill(text)
    page.locator(f'#palette[data-shown="{text}"]').wait_for()
    return page.locator("#palette [role=option]")


@pytest.mark.long
def test_the_palette_runs_the_commands_of_the_page(page):
    cell(page, "Name").click()
    expect(search(page, "edit the cell").first).to_have_text(re.compile("^Edit the cell.*F2$"))
    page.keyboard.press("Enter")
    page.locator("#cell-editor").wait_for()
    page.keyboard.press("Escape")
    closed(page)
    # a button of the page, one of the user's menu, which both come first the next time
    search(page, "facets")
    page.keyboard.press("Enter")
    page.locator("#facets").wait_for()
    expect(search(page, "dark")).to_have_text(["Dark theme"])
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Control+K")
    used = page.get_by_role("group", name="Recently used").get_by_role("option")
    expect(used).to_have_text(["Dark theme", "Facets", re.compile("^Edit the cell")])
    check_axe(page, "#palette")


@pytest.mark.long
def test_the_palette_has_no_commands_of_another_page(page):
    # a link of the page, which has its filter, and the page that it leads to are one
    expect(search(page, "facets").and_(page.locator("#palette :not([data-kind=HELP])"))).to_have_count(1)
    page.keyboard.press("Escape")
    expect(search(page, "schema typed")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/typed/schema/")
    expect(search(page, "edit the cell")).to_have_count(0)


@pytest.mark.long
def test_a_mouse_press_cancels_the_g_shortcut(page):
    metrics = page.locator("[data-go=m]")
    metrics.evaluate("link => link.addEventListener('click', () => link.dataset.clicked = '')")
    page.keyboard.press("g")
    page.locator("h1").click()
    page.keyboard.press("m")
    expect(metrics).not_to_have_attribute("data-clicked", re.compile(""))
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/devstoreaccount1/metrics/")
