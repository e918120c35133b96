"""The way back in a real browser: from the toast, by keyboard, later from the record; with and without scripts."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import TableClient, generate_table_sas
from playwright.sync_api import expect

from console.grid.tokens import encode_key
from storage.domain.entities.entity import EntityKey
from tests.browser.page import check, check_axe, check_reflow

ACCOUNT = "/ui/a/devstoreaccount1/"
PAGE = f"{ACCOUNT}activity/"
HOSTILE = '<img src=x onerror="alert(1)"> %(who)s {{ 7|add:7 }} مرحبا'


@pytest.fixture
def make(service):
    """`make("undo1")`: a table with three entities."""

    def make(name):
        table = service.create_table_if_not_exists(name)
        for number in range(3):
            table.upsert_entity({"PartitionKey": "se", "RowKey": str(number), "A": number})
        return table

    return make


def remove(page, table, *rows):
    """As the grid does it; what is said about it stands on the next page."""
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


def test_e7_delete_three_rows_undo_from_the_toast_and_later_from_activity(open_page, admin, make):
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

    # the way back has a way back
    undo_button(page).last.click()
    expect(page.locator("#toasts")).to_contain_text("Deleted 3 entities from undotoast.")
    expect(page.locator("[data-grid] input[name=key]")).to_have_count(1)

    page.goto(f"{PAGE}?table=undotoast")
    newest = page.locator(".event").first
    expect(newest).to_contain_text("deleted 3 entities from undotoast")
    newest.get_by_role("button", name=re.compile("^Undo")).click()
    expect(page.locator(".event").first).to_contain_text("inserted 3 entities into undotoast")
    expect(page.locator(".event").first).to_contain_text("undoes an earlier change")
    expect(page.locator(".event.undone")).to_have_count(3)
    assert rows(table) == ["0", "1", "2", "kept"]


def test_by_keyboard_and_without_leaving_the_place(open_page, admin, make):
    table = make("undokeys")
    page = open_page(PAGE, state=admin, height=300)
    remove(page, table, "1")
    page.goto(f"{PAGE}?table=undokeys")
    remove_toast = page.locator("#toasts [data-toast]")
    expect(remove_toast).to_have_count(1)

    page.locator("#who").focus()
    page.keyboard.press("Control+z")  # what was typed is not what was deleted
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


def test_a_toast_stays_while_it_is_looked_at(open_page, admin, make):
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


def test_the_page_with_hostile_names(open_page, admin, make):
    table = make("undolook")
    table.upsert_entity({"PartitionKey": "se", "RowKey": HOSTILE.replace("/", ""), "Text": HOSTILE})
    page = open_page(PAGE, state=admin)
    remove(page, table, HOSTILE)
    page.goto(f"{PAGE}?table=undolook")
    for summary in page.locator(".event > details > summary").all():
        summary.press("Enter")  # the details that arrive above would move it away from the mouse
    # what the SDK has written is there too, what the console has written is there once
    expect(page.locator(".event-details")).to_have_count(6)
    expect(page.locator(".event").first.locator(".differences")).to_contain_text(HOSTILE)
    page.locator(".documents > summary").first.click()
    check(page)
    page.locator("#what").select_option("tables")
    expect(page.locator(".event")).to_have_count(1)
    expect(page).to_have_url(re.compile("what=tables"))
    page.go_back()
    expect(page.locator(".event")).to_have_count(6)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as NDJSON").click()
    assert download.value.path().read_text().count("\n") == 2


def test_narrow(open_page, admin, make):
    page = open_page("/ui/activity/", state=admin, width=320, height=640, color_scheme="dark")
    remove(page, make("undonarrow"), "0")
    page.goto("/ui/activity/")
    page.locator(".event > details > summary").first.click()
    expect(page.locator(".event-details").first).to_be_visible()
    check(page)


def test_a_script_changed_thousands_of_entities_while_others_write(open_page, admin, service, console):
    """Found in the history of the table by who and when, undone there, and undone again."""
    table = service.create_table_if_not_exists("mistake")
    names = [f"{number:05}" for number in range(2_000)]

    def write(client, value, chosen=names):
        parts = [chosen[start : start + 100] for start in range(0, len(chosen), 100)]
        with ThreadPoolExecutor(4) as threads:
            list(
                threads.map(lambda part: client.submit_transaction([upsert(it, value) for it in part]), parts)
            )

    def upsert(name, value):
        return "upsert", {"PartitionKey": "p", "RowKey": name, "Status": value}, {"mode": "replace"}

    def values():
        return Counter(entity["Status"] for entity in table.list_entities(select=["Status"]))

    write(table, "paid")
    key = AzureNamedKeyCredential(console.account, console.key)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    token = generate_table_sas(key, "mistake", permission="raud", expiry=expiry)
    with TableClient(console.endpoint, "mistake", credential=AzureSasCredential(token)) as script:
        write(script, "lost")
    write(table, "returned", names[:30])

    page = open_page(f"{ACCOUNT}t/mistake/history/", state=admin)
    page.get_by_label("How").select_option("SAS token")
    histogram = page.get_by_role("slider", name="Changes per 20 minutes, last 24 hours")
    expect(page.locator(".histogram")).to_contain_text("2,000 changes")
    page.get_by_label("Period").select_option("Changes per minute, last hour")
    histogram = page.get_by_role("slider", name="Changes per minute, last hour")
    histogram.focus()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Home")
    page.keyboard.press("Enter")
    # a minute may have begun since they were selected
    expect(page.locator(".histogram g.selected").nth(58)).to_be_attached()
    expect(histogram).to_be_focused()
    expect(page).to_have_url(re.compile("since=.*how=sas|how=sas.*since="))
    expect(page.locator(".event").first).to_contain_text("changed 100 entities in mistake")

    page.get_by_role("link", name="Undo these changes").click()
    panel = page.locator("#revert")
    expect(panel.get_by_role("heading", name="Undo changes to mistake")).to_be_focused()
    expect(panel.locator(".revert-numbers .changed b")).to_have_text("1,970")
    expect(panel.locator(".revert-numbers .skipped b")).to_have_text("30")
    expect(panel.locator("del").first).to_have_text("lost")
    expect(panel.locator("ins").first).to_have_text("paid")
    panel.get_by_role("radio", name="skipped").check()
    expect(panel).to_contain_text("Changed again by key1")
    check_axe(page, "#revert")
    check_reflow(page)
    panel.get_by_role("heading").focus()
    page.keyboard.press("Escape")
    expect(panel).to_be_empty()
    check(page)
    page.get_by_role("link", name="Undo these changes").click()

    # others go on with their work
    button = panel.get_by_role("button", name="Undo 1,970 changes")
    expect(button).to_be_visible()
    with ThreadPoolExecutor(1) as others:
        working = others.submit(
            lambda: [table.upsert_entity(upsert(name, "sent")[1]) for name in names[1000:1800:20]]
        )
        button.click()
        expect(page.locator("#toasts")).to_contain_text("Undid changes to")
        working.result()
    found = values()
    assert (found["returned"], found["sent"], found["lost"]) == (30, 40, 0)
    assert found["paid"] == 2_000 - 70

    undo_button(page).click()
    expect(page.locator("#toasts .toast").last).not_to_contain_text("skipped")
    found = values()
    assert (found["returned"], found["sent"]) == (30, 40)
    assert found["lost"] == 2_000 - 70
