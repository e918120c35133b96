"""Deletion of a row by a client while a user writes into one of its cells: typed text is not lost."""

import pytest
from azure.core.exceptions import ResourceNotFoundError
from playwright.sync_api import expect

from tests.browser.page import check_axe

pytestmark = pytest.mark.long
PEOPLE = "/ui/a/devstoreaccount1/t/deleted/"


@pytest.fixture
def deleted(service):
    table = service.create_table_if_not_exists("deleted")
    table.upsert_entity({"PartitionKey": "se", "RowKey": "ada", "Name": "Ada", "Age": 36})
    return table


def test_an_editor_opened_in_a_deleted_row_says_so(open_page, admin, deleted):
    page = open_page(PEOPLE, state=admin)
    age = page.locator("[data-grid] td[data-property=Age]").first
    deleted.delete_entity("se", "ada")
    age.click()
    page.keyboard.press("F2")
    editor = page.locator("dialog #cell-editor")
    expect(editor).to_contain_text("key1 deleted this entity at")
    # in a column of few characters, without an empty field below
    assert age.bounding_box()["width"] < 120 < 300 < editor.bounding_box()["width"]
    assert editor.locator("h2, .button").evaluate_all(
        "all => all.every(it => it.scrollWidth <= it.clientWidth)"
    )
    expect(editor.locator("[name=value]")).to_be_hidden()
    expect(editor.get_by_role("button", name="Copy text")).to_be_hidden()
    editor.get_by_role("button", name="Insert again").click()
    expect(page.locator("#toasts")).to_contain_text("Inserted the entity again")
    assert deleted.get_entity("se", "ada")["Age"] == 36


def test_text_typed_into_a_deleted_row_is_copied_and_inserted_again(open_page, admin, deleted):
    page = open_page(PEOPLE, state=admin)
    cell = page.locator("[data-grid] td[data-property=Name]").first
    expect(cell).to_have_text("Ada")
    deleted.delete_entity("se", "ada")
    cell.click()
    page.keyboard.type("Gr")
    editor = page.locator("dialog #cell-editor")
    expect(editor).to_contain_text("key1 deleted this entity at")
    page.keyboard.type("ace")  # typing continues where it began
    expect(editor.locator("[name=value]")).to_have_value("Grace")
    check_axe(page, "dialog:has(#cell-editor)")

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    editor.get_by_role("button", name="Copy text").click()
    expect(page.locator("#toasts")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "Grace"
    with pytest.raises(ResourceNotFoundError):
        deleted.get_entity("se", "ada")

    editor.get_by_role("button", name="Insert again").click()
    expect(page.locator("#toasts")).to_contain_text("Inserted the entity again")
    expect(editor).to_have_count(0)
    entity = deleted.get_entity("se", "ada")
    assert (entity["Name"], entity["Age"]) == ("Grace", 36)
