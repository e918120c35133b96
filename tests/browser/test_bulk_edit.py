"""A bulk edit in a real browser: from a query to the page, by keyboard to its preview, run as a job, and undone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check, check_axe, check_reflow

pytestmark = pytest.mark.long
TABLE = "/ui/a/devstoreaccount1/t/orders/"


@pytest.fixture
def orders(service):
    """Sixty entities, of which fifty have a Total from 10 on."""
    table = service.create_table_if_not_exists("orders")
    keys = ({"PartitionKey": "shop", "RowKey": f"{number:02}", "Total": number} for number in range(60))
    table.submit_transaction([("upsert", key | {"Note": "Zoë <b>"}) for key in keys])
    yield table
    service.delete_table("orders")


def total(orders):
    return orders.get_entity("shop", "10")["Total"]


def test_from_a_query_to_the_undo(open_page, admin, orders, screenshots):
    page = open_page(TABLE + "?f=Total+ge+10&top=25", state=admin)
    page.get_by_role("link", name="Bulk edit").click()
    preview = page.locator("#bulk-preview")
    expect(preview).to_contain_text("Complete the operations")

    # names are completed, and what is wrong is marked at its place; nothing moves
    page.locator("#operation-0-property").fill("Total")
    page.locator("#operation-0-expression").focus()
    editor = page.locator("#operation-0-expression-editor")
    expect(editor.locator(".cm-content")).to_be_focused()
    page.keyboard.type("rou")
    expect(editor.locator(".cm-tooltip-autocomplete [aria-selected]")).to_contain_text("round(x, digits)")
    page.keyboard.press("Enter")
    page.keyboard.type("Tot")
    expect(editor.locator(".cm-tooltip-autocomplete [aria-selected]")).to_contain_text("Total")
    page.keyboard.press("Enter")
    page.keyboard.type(" * 1.5, 1)")
    expect(preview).to_contain_text("50 will change")
    expect(preview).to_contain_text("Total: Int32 → Double")
    box = page.locator("#operations").bounding_box()
    page.keyboard.type(" + uper(Total)")
    note = page.locator("#operation-0-note")
    expect(note).to_contain_text("Did you mean upper?")
    expect(editor.locator(".cm-lintRange-error")).to_have_text("uper")
    assert page.locator("#operations").bounding_box() == box
    check_axe(page, "main")
    for _ in " + uper(Total)":
        page.keyboard.press("Backspace")
    expect(note).to_have_text("")
    expect(page.get_by_role("button", name="Edit 50 entities")).to_be_enabled()

    # a second operation, moved before the first
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
    page.screenshot(path=screenshots / "bulk-edit-light.png", full_page=True)

    # the address is all of it, on a phone as well
    phone = open_page(page.url, state=admin, width=390, color_scheme="dark")
    expect(phone.locator("#bulk-preview")).to_contain_text("50 will change")
    check_reflow(phone)
    check_axe(phone, "main", appearance_only=True)
    phone.screenshot(path=screenshots / "bulk-edit-dark-390.png", full_page=True)

    page.locator("#bulk-run-button").click()
    expect(page.locator("#job")).to_contain_text("finished")
    assert (total(orders), "Note" in orders.get_entity("shop", "10")) == (15.0, False)
    check(page)
    page.locator("#job").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Undid")
    assert total(orders) == 10


def test_what_is_typed_and_pressed_while_operations_are_arranged_is_kept(open_page, admin, orders):
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


def test_all_that_a_query_finds_is_deleted_by_a_job(open_page, admin, orders):
    page = open_page(TABLE + "?f=Total+ge+10&top=25", state=admin)
    page.locator("[data-select-page]").check()
    page.get_by_role("button", name=re.compile("^Select all")).click()  # which may have to count them first
    expect(page.locator("[data-picked-count]")).to_have_text("50 selected")
    page.locator("#selection [data-delete]").click()
    page.get_by_role("button", name="Delete 50 entities").click()
    expect(page.locator("#job")).to_contain_text("finished")
    assert len(list(orders.list_entities())) == 10
    page.locator("#job").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Undid changes to 50 entities")
    assert len(list(orders.list_entities())) == 60
