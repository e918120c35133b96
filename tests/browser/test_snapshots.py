"""Forms of snapshots and branches, whose previews follow what is chosen."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, confirm_identity

pytestmark = pytest.mark.long
PAGE = "/ui/a/devstoreaccount1/snapshots/"


def test_the_restore_preview_follows_excluded_tables(open_page, admin, console, service):
    table = service.create_table_if_not_exists("snapped")
    table.upsert_entity({"PartitionKey": "se", "RowKey": "1", "Name": "before"})
    console.manage("snapshot", "take", "devstoreaccount1", "baseline")
    table.upsert_entity({"PartitionKey": "se", "RowKey": "1", "Name": "after"})
    page = open_page(PAGE, state=admin)
    confirm_identity(page)
    page.get_by_role("link", name="baseline", exact=True).click()
    row = page.locator(".preview tbody tr").filter(has_text="snapped")
    expect(row.locator("td.number")).to_have_text(["0", "1", "0"])
    check(page)
    row.get_by_role("checkbox").check()
    expect(page.locator(".preview")).to_contain_text("Nothing differs from this snapshot.")
    row.get_by_role("checkbox").uncheck()
    page.get_by_role("button", name="Change 1").click()
    expect(page.locator("#toasts")).to_contain_text("from baseline.")
    assert table.get_entity("se", "1")["Name"] == "before"


def test_a_rule_of_masking_shows_an_example(open_page, admin, service):
    table = service.create_table_if_not_exists("masked")
    table.upsert_entity({"PartitionKey": "se", "RowKey": "1", "Email": "ada@shop.test", "City": "Izmir"})
    page = open_page(f"{PAGE}branch/", state=admin)
    confirm_identity(page)
    # personal-looking properties are visible, all others one click away
    expect(page.locator(".masking tbody tr").filter(has_text="masked.Email")).to_contain_text(
        "looks personal"
    )
    page.get_by_text("Mask another property").click()
    city = page.locator(".masking tbody tr").filter(has_text="masked.City")
    city.get_by_label("Rule of City").select_option("constant")
    expect(city.locator(".after")).to_have_text(re.compile(r"\(masked\)"))
    check_axe(page, "main")
