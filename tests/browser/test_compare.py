"""A branch is compared with its origin in a real browser: two entities are promoted, and taken back."""

import re

from playwright.sync_api import expect

from tests.browser.page import check, confirm_identity

ORIGIN = "devstoreaccount1"


def stock(table):
    return {entity["RowKey"]: entity["Stock"] for entity in table.list_entities()}


def test_entities_of_a_branch_are_promoted_and_taken_back(open_page, admin, service):
    table = service.create_table_if_not_exists("promoted")
    for number in range(4):
        table.upsert_entity({"PartitionKey": "se", "RowKey": str(number), "Stock": number})
    page = open_page(f"/ui/a/{ORIGIN}/snapshots/branch/", state=admin)
    confirm_identity(page)
    page.get_by_label("Name", exact=True).fill("promotion")
    for box in page.locator("input[name=table]").all():
        box.set_checked(box.get_attribute("value") == "promoted")
    page.get_by_role("button", name="Create branch").click()
    expect(page.locator("#branches")).to_be_visible()
    for number in range(1, 4):
        table.update_entity({"PartitionKey": "se", "RowKey": str(number), "Stock": 100 + number})
    changed = stock(table)

    # without a choice, a branch is compared with what it was made from
    page.goto("/ui/a/promotion/compare/")
    expect(page.locator("details.side").nth(0)).to_contain_text("promotion")
    expect(page.locator("details.side").nth(1)).to_contain_text(ORIGIN)
    page.get_by_role("link", name=re.compile("^promoted ")).click()
    expect(page.get_by_role("link", name="All 3")).to_have_attribute("aria-current", "true")
    check(page)

    # by keyboard: two of three
    boxes = page.locator("tbody input[name=key]")
    for number in (0, 1):
        boxes.nth(number).focus()
        page.keyboard.press("Space")
    expect(page.locator("[data-selected-count]")).to_have_text("2 entities selected")
    page.get_by_role("button", name=f"Change 2 in {ORIGIN}").press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Applied 2 entities")
    expect(page.get_by_role("link", name="All 1")).to_be_visible()
    assert stock(table) == {**changed, "1": 1, "2": 2}

    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Undid changes to 2 entities.")
    assert stock(table) == changed

    # the address says it all; the other account brings its tables
    swapped = page.get_by_role("link", name="Swap sides")
    swapped.click()
    expect(page).to_have_url(re.compile(f"left={ORIGIN}&right=promotion"))
    page.locator("details.side summary").first.click()
    # both accounts may have the same tables: the fields that are replaced are marked
    page.locator("#left-fields").evaluate("fields => fields.dataset.old = ''")
    page.locator("select[name=left-account]").select_option("promotion")
    page.locator("#left-fields:not([data-old])").wait_for()
    expect(page.locator("select[name=left-table] option")).to_have_text(["All tables", "promoted"])
    page.locator("select[name=left-moment]").select_option("@")
    page.locator("input[name=left-time]").fill("2020-01-01T00:00:00Z")


def test_a_side_that_there_is_not_is_said_at_its_place(open_page, admin):
    page = open_page(
        f"/ui/a/{ORIGIN}/compare/?left={ORIGIN}%40nothing&right={ORIGIN}", state=admin, expect=404, width=390
    )
    expect(page.get_by_role("alert")).to_contain_text("neither a time in RFC 3339 nor a snapshot")
    check(page)
