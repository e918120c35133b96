"""A grid that is open shows what others change, as it happens."""

import re
import time

import pytest
from azure.data.tables import TableServiceClient
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe

# the mark of a change leaves after five seconds, in which a test on a busy machine may not get to it
STAYING_MARKS = """
() => {
    const timer = setTimeout;
    window.setTimeout = (act, wait, ...given) => timer(act, wait === 5000 ? 120_000 : wait, ...given);
}
"""


@pytest.fixture
def rows(console):
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        service.delete_table("live")
        table = service.create_table("live")
        for name in ("ada", "alan", "grace"):
            put(table, name, 1)
        yield table
        table.close()


def put(table, name, score):
    table.upsert_entity({"PartitionKey": "p", "RowKey": name, "Score": score, "Note": "as it was"})


def at(page, name, of):
    row = page.locator("tr[data-key]", has=page.locator(f'td:text-is("{of}")'))
    return row.locator(f'td[data-property="{name}"]')


def test_changes_of_other_users_are_marked_without_moving_rows(open_page, admin, rows):
    page = open_page("/ui/a/devstoreaccount1/t/live/", state=admin)
    page.locator("tr[data-key]").first.wait_for()
    page.evaluate(STAYING_MARKS)
    at(page, "Score", "alan").click()

    began = time.monotonic()
    put(rows, "ada", 2)
    changed = at(page, "Score", "ada")
    expect(changed).to_have_text("2")
    print(f"change to event in the browser: {time.monotonic() - began:.2f} s")
    expect(changed).to_have_attribute("data-live", "")
    expect(page.locator("td[data-live]")).to_have_count(1)
    expect(at(page, "Score", "alan")).to_be_focused()
    expect(page.locator("#said")).to_have_text(re.compile("Cells changed by others: 1"))

    put(rows, "alan", 3)
    focused = at(page, "Score", "alan")
    expect(focused).to_have_text("3")
    expect(focused).to_be_focused()
    expect(page.locator('td[tabindex="0"]')).to_have_count(1)

    rows.delete_entity("p", "alan")
    gone = page.locator("tr[data-gone]")
    expect(gone).to_have_count(1)
    expect(gone).to_have_attribute("title", "Deleted")
    put(rows, "bertha", 1)
    put(rows, "charles", 1)
    news = page.locator("[data-live-news]")
    expect(news).to_have_text(re.compile(r"2 new entities:\s+Show"))
    expect(page.locator("tr[data-key]")).to_have_count(3)
    check_axe(page)
    news.get_by_role("button", name="Show").click()
    expect(page.locator("tr[data-key]")).to_have_count(4)
    expect(news).to_be_hidden()
    assert page.evaluate("document.activeElement.matches('td, th')")


@pytest.mark.long
def test_own_changes_are_not_marked(open_page, admin, rows):
    page = open_page("/ui/a/devstoreaccount1/t/live/", state=admin)
    page.locator("tr[data-key]").first.wait_for()
    # the change is heard before it is answered
    held = Held(page, "**/t/live/cells/", fetched=True)
    at(page, "Score", "alan").click()
    page.keyboard.press("Delete")
    cell = at(page, "Score", "alan")
    expect(cell).to_have_text("not set")
    expect(cell).to_be_focused()
    expect(page.locator("td[data-live]")).to_have_count(0)
    held.release()
    page.get_by_text("Score removed", exact=True).wait_for()


@pytest.mark.long
def test_a_stale_poll_does_not_revert_a_local_change(open_page, admin, rows):
    page = open_page("/ui/a/devstoreaccount1/t/live/", state=admin)
    page.locator("tr[data-key]").first.wait_for()
    look = Held(page, re.compile(r"/t/live/(\?|$)"), fetched=True)
    put(rows, "grace", 3)
    look.wait()
    at(page, "Score", "ada").dblclick()
    page.locator("#cell-editor [name=value]").fill("9")
    page.keyboard.press("Enter")
    page.get_by_text("Score saved", exact=True).wait_for()
    look.release()
    expect(at(page, "Score", "grace")).to_have_text("3")  # by the next look
    assert at(page, "Score", "ada").inner_text() == "9"  # at no time another


@pytest.mark.long
def test_an_edited_cell_survives_updates_and_saving_reports_the_conflict(open_page, admin, rows):
    page = open_page("/ui/a/devstoreaccount1/t/live/", state=admin)
    at(page, "Score", "ada").dblclick()
    page.locator("#cell-editor [name=value]").fill("7")
    put(rows, "ada", 2)
    put(rows, "grace", 3)
    expect(at(page, "Score", "grace")).to_have_text("3")
    expect(page.locator("#cell-editor [name=value]")).to_have_value("7")
    expect(at(page, "Score", "ada")).to_have_text("1", use_inner_text=True)
    page.keyboard.press("Enter")
    page.locator("#cell-conflict-title").wait_for()
    page.keyboard.press("Escape")
    expect(at(page, "Score", "ada")).to_have_text("2")


def test_a_page_of_a_table_that_is_deleted_says_so_by_itself(open_page, admin, service):
    put(service.create_table("passing"), "ada", 1)
    page = open_page("/ui/a/devstoreaccount1/t/passing/", state=admin, expect=404)
    page.locator("tr[data-key]").wait_for()
    service.delete_table("passing")
    said = page.locator("#toasts")
    expect(said).to_contain_text("key1 deleted the table passing at")
    said.get_by_role("button", name="Restore passing").click()
    expect(said).to_contain_text("Restored")
    expect(page).to_have_url(re.compile("/t/passing/$"))
