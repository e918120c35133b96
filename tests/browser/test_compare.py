"""Entities that differ are selected by keys, applied and taken back; a side is chosen."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, confirm_identity

pytestmark = pytest.mark.long
ACCOUNT = "devstoreaccount1"
COMPARE = f"/ui/a/{ACCOUNT}/compare/"


@pytest.fixture
def compared(console, service):
    """Make a table in which three entities were changed after a snapshot."""
    table = service.create_table("compared")
    put(table, 0)
    console.manage("snapshot", "take", ACCOUNT, "compared")
    put(table, 100)
    yield table
    service.delete_table("compared")


def put(table, least):
    for number in range(3):
        table.upsert_entity({"PartitionKey": "se", "RowKey": str(number), "Stock": least + number})


def stock(table):
    return [entity["Stock"] for entity in table.list_entities()]


def test_entities_are_selected_by_keys_and_applied(open_page, admin, compared):
    page = open_page(f"{COMPARE}?left={ACCOUNT}%40compared&right={ACCOUNT}", state=admin)
    confirm_identity(page)
    page.locator("#main").get_by_role("link", name=re.compile("^compared ")).click()
    expect(page.get_by_role("link", name="All 3")).to_have_attribute("aria-current", "true")
    check_axe(page, "main")
    boxes = page.locator("tbody input[name=key]")
    for number in (0, 1):
        boxes.nth(number).focus()
        page.keyboard.press("Space")
    expect(page.locator("[data-selected-count]")).to_have_text("2 entities selected")
    page.get_by_role("button", name=f"Change 2 in {ACCOUNT}").press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Applied 2 entities")
    expect(page.get_by_role("link", name="All 1")).to_be_visible()
    assert stock(compared) == [0, 1, 102]
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Undid changes to 2 entities.")
    assert stock(compared) == [100, 101, 102]


def test_another_account_brings_its_tables(open_page, admin, console):
    console.manage("account", "add", "compared")
    page = open_page(f"{COMPARE}?left={ACCOUNT}&right={ACCOUNT}", state=admin)
    page.locator("details.side summary").first.click()
    page.locator("select[name=left-account]").select_option("compared")
    expect(page.locator("select[name=left-table] option")).to_have_text(["All tables"])
    page.locator("select[name=left-moment]").select_option("@")
    page.locator("input[name=left-time]").fill("2020-01-01T00:00:00Z")


def test_an_unknown_side_is_reported_at_its_field(open_page, admin):
    page = open_page(
        f"{COMPARE}?left={ACCOUNT}%40nothing&right={ACCOUNT}", state=admin, expect=404, width=390
    )
    expect(page.get_by_role("alert")).to_contain_text("neither a time in RFC 3339 nor a snapshot")
    check(page)
