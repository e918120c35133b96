"""The history of a table in a real browser: who broke a value yesterday, and putting it back."""

import re

import psycopg
import pytest
from playwright.sync_api import expect

from storage.server.data_folder import DataFolder
from tests.browser.page import check

ACCOUNT = "/ui/a/devstoreaccount1/"
DAY = 24 * 60 * 60 * 10_000_000  # ticks


@pytest.fixture
def broken(console, service):
    """A table in which the Status and the Total of an entity were broken yesterday, and its Note changed today."""
    table = service.create_table("broken")
    for number in range(3):
        table.create_entity(
            {"PartitionKey": "store", "RowKey": f"ord-{number}", "Status": "paid", "Total": 5}
        )
    order = {"PartitionKey": "store", "RowKey": "ord-1"}
    table.update_entity({**order, "Status": "lost", "Total": 0})
    with psycopg.connect(
        f"host={DataFolder(console.data).socket_folder} user=tablero dbname=tablero"
    ) as connection:
        [(number,)] = connection.execute("SELECT id FROM storage_table WHERE name = 'broken'")
        [(segment,)] = connection.execute(
            "SELECT 'history_' || account_id || '_' || number FROM storage_historysegment"
            " JOIN storage_account a ON a.id = account_id WHERE a.name = 'devstoreaccount1' ORDER BY number LIMIT 1"
        )
        connection.execute(f"UPDATE {segment} SET ts = ts - {DAY}, was = was - {DAY} WHERE tbl = {number}")
        connection.execute(f"UPDATE entity_{number} SET ts = ts - {DAY}")
        connection.execute(
            "UPDATE storage_table SET created_at = created_at - interval '2 days' WHERE id = %s", [number]
        )
        connection.execute("UPDATE storage_historysegment SET started_at = started_at - interval '3 days'")
    table.update_entity({**order, "Note": "call back"})
    return table


def test_find_who_broke_a_value_yesterday_and_put_it_back(open_page, admin, broken):
    page = open_page(f"{ACCOUNT}t/broken/", state=admin)
    status = page.locator("tr", has_text="ord-1").locator("td[data-property=Status]")
    expect(status).to_have_text("lost")

    page.locator("#past-button").click()  # an hour ago
    expect(page.locator(".travel")).to_contain_text("read-only")
    expect(status).to_have_text("lost")
    expect(page.locator(".travel-changes svg")).to_be_visible()
    page.get_by_role("link", name="Previous change").click()
    expect(status).to_have_text("lost")  # right after it
    page.get_by_role("link", name="Previous change").click()
    expect(status).to_have_text("paid")
    expect(page).to_have_url(re.compile("asof="))
    expect(page.locator(".travel")).to_contain_text("1 entity on this page differs from now")
    check(page)

    # a marked cell tells its value of today, and no key changes it
    status.click()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#grid-tip")).to_contain_text("Now: 0")
    page.keyboard.type("x")
    expect(page.locator("[data-grid] td input:not([type=checkbox])")).to_have_count(0)

    page.locator("tr", has_text="ord-1").locator("a.open").click(force=True)
    drawer = page.locator("#drawer")
    expect(drawer).to_contain_text("As of")
    expect(drawer).to_contain_text("paid")
    drawer.get_by_role("link", name="History").click()

    versions = page.locator(".versions li")
    expect(versions).to_have_count(3)
    expect(page.get_by_role("heading", name="Yesterday")).to_be_visible()
    versions.first.get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".version-facts")).to_contain_text("key1 Account key")
    changes = page.locator(".version-changes").first
    expect(changes.locator("tr", has_text="Status")).to_contain_text("lost")
    expect(changes.locator("tr", has_text="Status")).to_contain_text("unchanged since")
    check(page)

    page.get_by_role("checkbox", name="Total").uncheck()
    page.get_by_role("button", name="Restore selected properties").click()
    expect(page.locator("#toasts")).to_contain_text("Restored 1 property")
    entity = broken.get_entity("store", "ord-1")
    assert (entity["Status"], entity["Total"], entity["Note"]) == ("paid", 0, "call back")
    expect(versions).to_have_count(4)
    expect(versions.first).to_contain_text("ada@example.org")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(versions).to_have_count(5)
    assert broken.get_entity("store", "ord-1")["Status"] == "lost"

    phone = open_page(page.url, state=admin, width=390)
    expect(phone.locator(".versions li")).to_have_count(5)
    check(phone)


def test_the_past_is_marked_and_a_range_of_it_undone(open_page, admin, service):
    table = service.create_table_if_not_exists("ranged")
    for number in range(3):
        table.upsert_entity({"PartitionKey": "p", "RowKey": str(number), "Status": "paid"})
    table.upsert_entity({"PartitionKey": "p", "RowKey": "1", "Status": "lost"})
    page = open_page(f"{ACCOUNT}t/ranged/", state=admin)
    page.locator("#past-button").click()  # before the last change
    status = page.locator("td[data-property=Status]").nth(1)
    expect(status).to_have_text("paid")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("button", name="Undo this range…")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    marked = status.evaluate("cell => getComputedStyle(cell).boxShadow")
    page.get_by_label("Mark differences").uncheck()
    assert marked != "none" and status.evaluate("cell => getComputedStyle(cell).boxShadow") == "none"
    page.reload()
    expect(page.get_by_label("Mark differences")).not_to_be_checked()
    page.get_by_label("Mark differences").check()

    # a drag over the histogram selects a range, and leads nowhere
    histogram = page.locator("[data-travel]")
    box = histogram.bounding_box()
    since = page.get_by_role("textbox", name="From")
    at, before = page.url, since.input_value()
    since.fill("")
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 9, steps=4)
    page.mouse.up()
    expect(histogram.locator("a.marked").nth(9)).to_be_attached()
    assert page.url == at
    expect(since).to_have_value(histogram.locator("a.marked").first.get_attribute("data-since"))

    since.fill(before)
    page.get_by_role("textbox", name="To").fill("2999-01-01 00:00:00Z")
    check(page)
    page.get_by_role("button", name="Undo this range").click()
    panel = page.locator("#revert")
    expect(panel.get_by_role("heading", name="Undo changes to ranged")).to_be_focused()
    panel.get_by_role("button", name="Undo 1 change").click()
    expect(page.locator("#toasts")).to_contain_text("Undid changes to 1 entity.")
    assert table.get_entity("p", "1")["Status"] == "paid"

    # the history of an entity is one of the tabs of its drawer
    page.goto(f"{ACCOUNT}t/ranged/")
    page.locator("tr", has_text="paid").nth(1).locator("a.open").click(force=True)
    drawer = page.locator("#drawer")
    drawer.get_by_role("link", name="History").click()
    expect(drawer.locator(".versions li")).to_have_count(3)
    expect(page).not_to_have_url(re.compile("/history/"))
    drawer.get_by_role("button", name="Restore selected properties").click()
    expect(drawer.locator(".versions li")).to_have_count(4)
    assert table.get_entity("p", "1")["Status"] == "lost"
    drawer.get_by_role("link", name="Form").click()
    expect(drawer.locator("#entity-form")).to_be_visible()
