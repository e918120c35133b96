"""The policies of a table: edited by keys and pointer, with a preview that follows."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.data.tables import TableAccessPolicy
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_reflow


@pytest.fixture
def make_table(service):
    """`make_table("name", {"a": policy})`: a table with these policies, gone in the end."""
    made = []

    def make(name, policies):
        made.append(name)
        table = service.create_table(name)
        table.set_table_access_policy(policies)
        return table

    yield make
    for name in made:
        service.delete_table(name)


def test_policies_are_edited(open_page, admin, make_table):
    later = datetime.now(UTC) + timedelta(days=40)
    partner, writer = (TableAccessPolicy(permission=letters, expiry=later) for letters in ("r", "raud"))
    table = make_table("policies4", {"partner-read": partner, "ci-writer": writer})
    make_table("policies5", {"copied": TableAccessPolicy(permission="dr")})
    page = open_page("/ui/a/devstoreaccount1/t/policies4/acl/", state=admin)
    check(page)

    # the preview follows, and leaves the focus where it is
    letter = page.get_by_role("checkbox", name="d Delete").nth(1)
    letter.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("d Delete removed")).to_be_visible()
    expect(letter).to_be_focused()
    identifier = page.get_by_label("Id", exact=True).first
    identifier.fill("partner")
    expect(page.get_by_text("Renaming creates a new policy")).to_be_visible()
    expect(identifier).to_be_focused()

    # presets by keys
    page.get_by_role("button", name="Expiry for policy 2: common times").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="End of the quarter").focus()
    page.keyboard.press("Enter")
    expiry = page.get_by_label("Expiry", exact=True).nth(1)
    expect(expiry).to_have_value(re.compile(r"^\d{4}-\d\d-3[01] 23:59:59$"))
    expect(expiry).to_be_focused()
    expect(identifier).to_have_value("partner")

    # what is wrong is at its field, and five are the most
    for number in (3, 4, 5):
        page.get_by_role("button", name="Add policy").click()
        expect(page.get_by_label("Id", exact=True)).to_have_count(number)
        expect(page.get_by_label("Id", exact=True).last).to_be_focused()
    expect(page.get_by_role("button", name="Add policy")).to_have_attribute("aria-disabled", "true")
    page.get_by_label("Id", exact=True).nth(2).fill("partner")
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_role("alert")).to_contain_text("There are 3 problems")
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("link", name="Policy 3").click()
    expect(page.get_by_label("Id", exact=True).nth(2)).to_be_focused()
    check_axe(page, "main")
    for number in (5, 4, 3):
        page.get_by_role("button", name=f"Remove policy {number}").click()
        expect(page.get_by_label("Id", exact=True)).to_have_count(number - 1)

    # the same as XML, and back
    page.get_by_role("button", name="XML", exact=True).click()
    document = page.get_by_role("textbox", name="SignedIdentifiers")
    expect(document).to_have_value(re.compile("<Id>partner</Id>"))
    document.fill(document.input_value().replace("<Id>partner</Id>", "<Id>partner"))
    expect(page.get_by_text("Fix the XML to see the impact.")).to_be_visible()
    document.fill(document.input_value().replace("<Id>partner", "<Id>partner</Id>"))
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_label("Id", exact=True).first).to_have_value("partner")

    # somebody else is quicker
    table.set_table_access_policy({"quicker": TableAccessPolicy(permission="r")})
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_text("These policies were changed after you opened them")).to_be_visible()
    expect(page.get_by_role("region", name="Current version")).to_contain_text("quicker")
    check_axe(page, "main")
    page.get_by_role("button", name="Save my version").click()
    expect(page.get_by_text("Saved the policies of policies4.")).to_be_visible()
    assert {name: it.permission for name, it in table.get_table_access_policy().items()} == {
        "partner": "r",
        "ci-writer": "rau",
    }

    # from another table, at the width of a phone
    page.set_viewport_size({"width": 320, "height": 800})
    page.get_by_role("button", name="Copy from another table").click()
    page.get_by_role("combobox", name="Table").select_option("policies5")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied the policies of policies5.")).to_be_visible()
    expect(page.get_by_label("Id", exact=True)).to_have_value("copied")
    expect(page.get_by_label("Id", exact=True)).to_be_focused()
    check_reflow(page)
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_text("Not saved yet.", exact=True)).to_have_count(0)
    expect(page.locator("#save-policies")).to_be_focused()
    assert list(table.get_table_access_policy()) == ["copied"]
