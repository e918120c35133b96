"""A bulk edit in a real browser: expressions, operations that are moved by keys, and all that a query finds."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check, check_axe, check_on_a_phone

pytestmark = pytest.mark.long
TABLE = "/ui/a/devstoreaccount1/t/orders/"
INCREASE = "0-op=set&0-property=Total&0-expression=Total+%2B+1"


@pytest.fixture
def orders(service):
    """Make sixty entities; fifty have a Total from 10 on."""
    table = service.create_table_if_not_exists("orders")
    keys = ({"PartitionKey": "shop", "RowKey": f"{number:02}", "Total": number} for number in range(60))
    table.submit_transaction([("upsert", key | {"Note": "Zoë <b>"}) for key in keys])
    yield table
    service.delete_table("orders")


def test_expressions_have_completion_and_error_marks(open_page, admin, orders):
    page = open_page(TABLE + "bulk/?f=Total+ge+10", state=admin)
    preview = page.locator("#bulk-preview")
    expect(preview).to_contain_text("Complete the operations")
    page.locator("#operation-0-property").fill("Total")
    page.locator("#operation-0-expression").focus()
    editor = page.locator("#operation-0-expression-editor")
    expect(editor.locator(".cm-content")).to_be_focused()
    for text, proposal in (("rou", "round(x, digits)"), ("Tot", "Total")):
        page.keyboard.type(text)
        expect(editor.locator(".cm-tooltip-autocomplete [aria-selected]")).to_contain_text(proposal)
        page.keyboard.press("Enter")
    page.keyboard.type(" * 1.5, 1)")
    expect(preview).to_contain_text("50 will change")
    expect(preview).to_contain_text("Total: Int32 → Double")
    box = page.locator("#operations").bounding_box()
    page.keyboard.type(" + uper(Total)")
    expect(page.locator("#operation-0-note")).to_contain_text("Did you mean upper?")
    expect(editor.locator(".cm-lintRange-error")).to_have_text("uper")
    assert page.locator("#operations").bounding_box() == box
    check_axe(page, "main")


def test_an_operation_is_moved_by_keys_and_all_of_them_run(open_page, admin, orders):
    page = open_page(f"{TABLE}bulk/?f=Total+ge+10&{INCREASE}", state=admin)
    preview = page.locator("#bulk-preview")
    expect(preview).to_contain_text("50 will change")
    page.locator("#add-operation").press("Enter")
    expect(page.locator("#operation-1-op")).to_be_focused()
    page.locator("#operation-1-op").select_option("remove")
    page.locator("#operation-1-property").fill("Note")
    expect(preview.locator("tbody tr").first).to_contain_text("Note")
    preview.evaluate("it => it.dataset.old = ''")
    page.keyboard.press("Alt+Shift+ArrowUp")
    expect(page.locator("#operation-0-op")).to_have_value("remove")
    expect(page.locator("#operation-0-down")).to_be_focused()
    expect(page.locator("#bulk-preview:not([data-old]) tbody tr").first).to_contain_text("Note")
    check(page)
    check_on_a_phone(page)
    page.locator("#bulk-run-button").click()
    expect(page.locator("#job")).to_contain_text("finished")
    stored = orders.get_entity("shop", "10")
    assert (stored["Total"], "Note" in stored) == (11, False)


def test_input_while_operations_are_rearranged_is_kept(open_page, admin, orders):
    page = open_page(TABLE + "bulk/?0-op=remove&0-property=Note", state=admin)
    expect(page.locator("#bulk-preview")).to_contain_text("60 will change")
    arranging = Held(page, "**/orders/bulk/")
    page.locator("#add-operation").click()
    arranging.wait()
    page.locator("#operation-0-property").fill("Total")
    page.locator("#add-operation").click()
    arranging.release()
    expect(page.locator("#operation-2-op")).to_be_visible()
    expect(page.locator("#operation-0-property")).to_have_value("Total")
    expect(page.locator("#operations > li")).to_have_count(3)


def test_all_matches_of_a_query_are_deleted_by_a_job(open_page, admin, orders):
    page = open_page(TABLE + "?f=Total+ge+10&top=25", state=admin)
    page.locator("[data-select-page]").check()
    page.get_by_role(
        "button", name=re.compile("^Select all")
    ).click()  # the button may have to count them first
    expect(page.locator("[data-picked-count]")).to_have_text("50 selected")
    page.locator("#selection [data-delete]").click()
    page.get_by_role("button", name="Delete 50 entities").click()
    expect(page.locator("#job")).to_contain_text("finished")
    assert len(list(orders.list_entities())) == 10
    page.locator("#job").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Undid changes to 50 entities")
    assert len(list(orders.list_entities())) == 60


@pytest.fixture
def totals(service):
    yield service.get_table_client("totals")
    service.delete_table("totals")


def test_second_copies_are_written_checked_and_repaired(open_page, admin, orders, totals):
    page = open_page(TABLE + "bulk/?f=Total+ge+50", state=admin)
    preview = page.locator("#bulk-preview")
    page.locator("#operation-0-op").select_option("second-copy")
    page.locator("#operation-0-table").fill("totals")
    page.locator("#operation-0-row_key").focus()
    page.keyboard.type("pad(Total, 4)")
    page.keyboard.press("Escape")  # the completion
    expect(preview).to_contain_text("10 will be copied")
    check(page)
    check_on_a_phone(page)
    page.get_by_role("button", name="Write 10 copies").click()
    expect(page.locator("#job")).to_contain_text("finished")
    assert len(list(totals.list_entities())) == 10

    orders.delete_entity("shop", "50")
    orders.update_entity({"PartitionKey": "shop", "RowKey": "51", "Total": 51, "Note": "New"}, mode="replace")
    page.locator("#job").get_by_role("link", name="Check copies").click()
    expect(preview).to_contain_text("Out of step. Run the edit to repair the copies.")
    expect(preview).to_contain_text("1 will replace an older copy")
    expect(preview).to_contain_text("1 left over: will be deleted")
    check_axe(page, "main")
    page.get_by_role("button", name="Repair 2 copies").click()
    expect(page.locator("#job")).to_contain_text("finished")
    assert "0050" not in {it["RowKey"] for it in totals.list_entities()}
    page.locator("#job").get_by_role("link", name="Check copies").click()
    expect(preview).to_contain_text("In step: each original has an up-to-date copy")
