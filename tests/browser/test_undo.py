"""The way back in a real browser: from the toast, by keyboard, later from the record, and for a range of changes."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient, generate_table_sas
from playwright.sync_api import expect

from console.grid.tokens import encode_key
from storage.domain.entities.entity import EntityKey
from tests.browser.page import Held, check, check_axe

ACCOUNT = "/ui/a/devstoreaccount1/"
PAGE = f"{ACCOUNT}activity/"
HOSTILE = '<img src=x onerror="alert(1)"> %(who)s {{ 7|add:7 }} مرحبا'


@pytest.fixture
def make(service):
    """Return `make("undo1")`, which makes a table with three entities."""

    def make(name):
        table = service.create_table_if_not_exists(name)
        for number in range(3):
            table.upsert_entity({"PartitionKey": "se", "RowKey": str(number), "A": number})
        return table

    return make


def remove(page, table, *rows):
    """Delete rows as the grid does; the message about it is shown on the next page."""
    keys = [("key", encode_key(EntityKey("se", row))) for row in rows]
    token = page.locator("input[name=csrfmiddlewaretoken]").first.input_value()
    body = urlencode([*keys, ("scope", "rows"), ("csrfmiddlewaretoken", token), ("next", PAGE)])
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = page.request.post(
        f"{ACCOUNT}t/{table.table_name}/delete/", data=body, headers=form, max_redirects=0
    )
    assert answer.status == 302


def rows(table):
    return sorted(entity["RowKey"] for entity in table.list_entities())


def undo_button(page):
    return page.locator("#toasts").get_by_role("button", name="Undo")


def test_deleted_rows_come_back_by_the_toast_without_a_load(open_page, admin, make):
    table = make("undotoast")
    table.upsert_entity({"PartitionKey": "se", "RowKey": "kept"})
    page = open_page(f"{ACCOUNT}t/undotoast/", state=admin)
    for row in range(3):
        page.locator("[data-grid] input[name=key]").nth(row).check()
    page.locator("#selection [data-delete]").click()
    expect(page.locator("#toasts")).to_contain_text("Deleted 3 entities")
    expect(page.locator("[data-grid] input[name=key]")).to_have_count(1)
    assert rows(table) == ["kept"]

    # the grid takes over what came back, and the page stays
    page.evaluate("window.stayed = true")
    undo_button(page).click()
    expect(page.locator("#toasts")).to_contain_text("Restored 3 entities in undotoast.")
    expect(page.locator("[data-grid] input[name=key]")).to_have_count(4)
    assert page.evaluate("window.stayed")
    assert rows(table) == ["0", "1", "2", "kept"]

    # the way back has a way back, and the keys go to the grid when the button is gone
    undo_button(page).last.press("Enter")
    expect(page.locator("[data-grid] :focus")).to_have_count(1)
    expect(page.locator("#toasts")).to_contain_text("Deleted 3 entities from undotoast.")
    expect(page.locator("[data-grid] input[name=key]")).to_have_count(1)


@pytest.fixture
def undo(open_page, admin, make):
    """Return `undo("undo1")`, which undoes a deletion on the settings of a new table; the request is held."""

    def undo(name):
        table = make(name)
        page = open_page(PAGE, state=admin)
        remove(page, table, "1")
        page.goto(f"{ACCOUNT}t/{name}/settings/")
        undoing = Held(page, "**/undo/*/")
        undo_button(page).click()
        return page, table, undoing

    return undo


def test_an_undo_is_done_where_the_page_is_left_at_once(undo):
    page, table, undoing = undo("undoleaving")
    undoing.wait()
    page.get_by_role("link", name="Schema").click()
    page.wait_for_url("**/schema/")
    with page.expect_response("**/undo/*/"):
        undoing.release()
    page.goto(f"{PAGE}?table=undoleaving")
    expect(page.locator("#toasts")).to_contain_text("Restored 1 entity")
    assert rows(table) == ["0", "1", "2"]


@pytest.mark.long
def test_an_undo_does_not_lead_back_from_a_page_that_was_asked_for(undo):
    page, table, undoing = undo("undoback")
    asked = Held(page, "**/schema/")
    undoing.wait()
    page.locator("a[href$='/t/undoback/schema/']").evaluate("link => link.click()")
    asked.wait()
    with page.expect_response("**/undo/*/"):
        undoing.release()
    page.wait_for_timeout(200)
    asked.release()
    page.wait_for_url("**/schema/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("undoback")
    assert rows(table) == ["0", "1", "2"]


@pytest.mark.long
def test_the_activity_undoes_in_its_place(open_page, admin, make):
    table = make("undolater")
    page = open_page(PAGE, state=admin)
    remove(page, table, "1")
    page.goto(f"{PAGE}?table=undolater")
    newest = page.locator(".event").first
    newest.get_by_role("button", name=re.compile("^Undo")).click()
    expect(newest).to_contain_text("undoes an earlier change")
    expect(page.locator(".event.undone")).to_have_count(1)
    assert rows(table) == ["0", "1", "2"]


@pytest.mark.long
def test_undo_by_keyboard_keeps_the_place(open_page, admin, make):
    table = make("undokeys")
    page = open_page(PAGE, state=admin, height=300)
    remove(page, table, "1")
    page.goto(f"{PAGE}?table=undokeys")
    remove_toast = page.locator("#toasts [data-toast]")
    expect(remove_toast).to_have_count(1)

    page.locator("#who").focus()
    page.keyboard.press("Control+z")  # typed text is undone instead of the deletion
    assert rows(table) == ["0", "2"]
    page.locator("#main").focus()
    page.keyboard.press("Control+z")
    expect(page.locator("#toasts")).to_contain_text("Restored 1 entity")
    assert rows(table) == ["0", "1", "2"]

    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url(f"**{ACCOUNT}")
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url(f"**{PAGE}")


@pytest.mark.long
def test_a_toast_in_use_stays(open_page, admin, make):
    table = make("undostays")
    page = open_page(PAGE, state=admin, fresh=True)
    remove(page, table, "1")
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 60)  # otherwise it goes on by itself too
    page.goto(PAGE)
    button = undo_button(page)
    button.focus()
    # else the clock ends its request
    while page.locator(".histogram-place.htmx-request, .histogram-place:empty").count():
        page.clock.run_for(1)
    page.clock.run_for(60_000)
    expect(button).to_be_visible()
    page.locator("#main").focus()
    page.clock.run_for(9_900)
    expect(button).to_be_visible()
    page.clock.run_for(200)
    expect(button).to_have_count(0)


@pytest.mark.long
def test_hostile_names_fit_a_narrow_page(open_page, admin, make):
    table = make("undolook")
    table.upsert_entity({"PartitionKey": "se", "RowKey": HOSTILE.replace("/", ""), "Text": HOSTILE})
    page = open_page(PAGE, state=admin, width=320, color_scheme="dark")
    remove(page, table, HOSTILE)
    page.goto(f"{PAGE}?table=undolook")
    for summary in page.locator(".event > details > summary").all():
        summary.press("Enter")  # the details that arrive above would move it away from the mouse
    expect(page.locator(".event-details")).to_have_count(6)
    expect(page.locator(".event").first.locator(".differences")).to_contain_text(HOSTILE)
    page.locator(".documents > summary").first.click()
    check(page)


@pytest.fixture
def mistake(console, service):
    """Make a table in which a script with a SAS token overwrote six entities; one was written again later."""
    table = service.create_table("mistake")

    def write(client, value, names="abcdef"):
        for name in names:
            client.upsert_entity({"PartitionKey": "p", "RowKey": name, "Status": value})

    write(table, "paid")
    key = AzureNamedKeyCredential(console.account, console.key)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    token = generate_table_sas(key, "mistake", permission="raud", expiry=expiry)
    with TableClient(console.endpoint, "mistake", credential=AzureSasCredential(token)) as script:
        write(script, "lost")
    write(table, "returned", "a")
    yield table
    service.delete_table("mistake")


@pytest.mark.long
def test_a_range_of_changes_is_selected_by_keys_and_undone_after_a_preview(open_page, admin, mistake):
    page = open_page(f"{ACCOUNT}t/mistake/history/", state=admin)
    page.get_by_label("How").select_option("SAS token")
    expect(page.locator(".histogram")).to_contain_text("6 changes")
    page.get_by_label("Period").select_option("Changes per minute, last hour")
    histogram = page.get_by_role("slider", name="Changes per minute, last hour")
    histogram.focus()
    for key in ("End", "Shift+Home", "Enter"):
        page.keyboard.press(key)
    # a minute may have begun since they were selected
    expect(page.locator(".histogram g.selected").nth(58)).to_be_attached()
    expect(histogram).to_be_focused()
    expect(page).to_have_url(re.compile("since=.*how=sas|how=sas.*since="))

    preview = page.get_by_role("link", name="Undo these changes")
    panel = page.locator("#revert")
    preview.click()
    expect(panel.get_by_role("heading", name="Undo changes to mistake")).to_be_focused()
    panel.get_by_role("radio", name="skipped").check()
    expect(panel).to_contain_text("Changed again by key1")
    check_axe(page, "#revert")
    panel.get_by_role("heading").focus()
    page.keyboard.press("Escape")
    expect(panel).to_be_empty()
    preview.click()
    panel.get_by_role("button", name="Undo 5 changes").click()
    expect(page.locator("#toasts")).to_contain_text("Undid changes to")
    assert [entity["Status"] for entity in mistake.list_entities()] == ["returned", *["paid"] * 5]
