"""Snapshots in a real browser: taken, data broken, previewed, restored, undone; a masked branch."""

import re

from playwright.sync_api import expect

from tests.browser.page import check, confirm_identity

PAGE = "/ui/a/devstoreaccount1/snapshots/"


def names(table):
    return sorted(entity["Name"] for entity in table.list_entities())


def test_take_break_preview_restore_undo(open_page, admin, service):
    table = service.create_table_if_not_exists("snapped")
    for number in range(5):
        table.upsert_entity({"PartitionKey": "se", "RowKey": str(number), "Name": f"n{number}"})
    page = open_page(PAGE, state=admin)
    confirm_identity(page)
    page.get_by_role("link", name="Take snapshot").click()
    page.get_by_label("Name", exact=True).fill("ci-baseline")
    page.get_by_role("button", name="Take snapshot").click()
    expect(page.locator("#toasts")).to_contain_text("Took the snapshot ci-baseline.")

    for number in range(3):
        table.upsert_entity({"PartitionKey": "se", "RowKey": str(number), "Name": "broken"})
    table.delete_entity("se", "4")
    broken = names(table)
    page.get_by_role("link", name="ci-baseline", exact=True).click()
    row = page.locator(".preview tbody tr").filter(has_text="snapped")
    expect(row.locator("td.number")).to_have_text(["1", "3", "0"])
    check(page)

    # what is left out changes the number on the button
    row.get_by_role("checkbox").check()
    expect(page.locator(".preview")).to_contain_text("Nothing differs from this snapshot.")
    page.locator(".preview tbody tr").filter(has_text="snapped").get_by_role("checkbox").uncheck()
    page.get_by_role("button", name="Restore 4 entities").click()
    expect(page.locator("#toasts")).to_contain_text("Restored 4 entities from ci-baseline.")
    assert names(table) == [f"n{number}" for number in range(5)]

    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Restored the state before it.")
    assert names(table) == broken


def test_a_masked_branch(open_page, admin, service):
    table = service.create_table_if_not_exists("masked")
    table.upsert_entity({"PartitionKey": "se", "RowKey": "1", "Email": "ada@shop.test", "City": "Izmir"})
    page = open_page(f"{PAGE}branch/", state=admin)
    confirm_identity(page)
    # what looks personal is in sight, all else one click away
    email = page.locator(".masking tbody tr").filter(has_text="masked.Email")
    expect(email).to_contain_text("looks personal")
    page.get_by_text("Mask another property").click()
    city = page.locator(".masking tbody tr").filter(has_text="masked.City")
    city.get_by_label("Rule of City").select_option("constant")
    expect(city.locator(".after")).to_have_text(re.compile(r"\(masked\)"))
    check(page)
    page.get_by_label("Name", exact=True).fill("maskedbranch")
    page.get_by_role("button", name="Create branch").click()
    expect(page.locator("#branches")).to_be_visible()
    expect(page.locator("table").filter(has_text="maskedbranch")).to_contain_text("masked")
    page.get_by_role("button", name="Reset maskedbranch").click()
    expect(page.locator("#toasts")).to_contain_text("Reset 0 entities of maskedbranch.")
