"""The policies of a table: edited by keys and pointer, with a preview that follows."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.data.tables import TableAccessPolicy
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_reflow

pytestmark = pytest.mark.long


@pytest.fixture
def page(open_page, admin, service):
    """Open the form of a table with two policies, and delete the table in the end."""
    later = datetime.now(UTC) + timedelta(days=40)
    with service.create_table("policies") as table:
        table.set_table_access_policy(
            {
                "partner-read": TableAccessPolicy(permission="r", expiry=later),
                "ci-writer": TableAccessPolicy(permission="raud", expiry=later),
            }
        )
    yield open_page("/ui/a/devstoreaccount1/t/policies/acl/", state=admin)
    service.delete_table("policies")


def identifiers(page):
    return page.get_by_label("Id", exact=True)


def test_the_preview_updates_and_keeps_the_focus(page):
    check(page)
    letter = page.get_by_role("checkbox", name="d Delete").nth(1)
    letter.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("d Delete removed")).to_be_visible()
    expect(letter).to_be_focused()
    identifiers(page).first.fill("partner")
    expect(page.get_by_text("Renaming creates a new policy")).to_be_visible()
    expect(identifiers(page).first).to_be_focused()
    # a preset by keys
    page.get_by_role("button", name="Expiry for policy 2: common times").press("Enter")
    page.get_by_role("button", name="End of the quarter").press("Enter")
    expiry = page.get_by_label("Expiry", exact=True).nth(1)
    expect(expiry).to_have_value(re.compile(r"^\d{4}-\d\d-3[01] 23:59:59$"))
    expect(expiry).to_be_focused()
    expect(identifiers(page).first).to_have_value("partner")


def test_mistakes_are_summed_up_and_lead_to_their_fields(page):
    page.set_viewport_size({"width": 320, "height": 800})
    for number in (3, 4, 5):
        page.get_by_role("button", name="Add policy").click()
        expect(identifiers(page)).to_have_count(number)
        expect(identifiers(page).last).to_be_focused()
    expect(page.get_by_role("button", name="Add policy")).to_have_attribute("aria-disabled", "true")
    identifiers(page).nth(2).fill("partner-read")
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_role("alert")).to_contain_text("There are 3 problems")
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("link", name="Policy 3").click()
    expect(identifiers(page).nth(2)).to_be_focused()
    check_axe(page, "main")
    check_reflow(page)
    page.get_by_role("button", name="Remove policy 5").click()
    expect(identifiers(page)).to_have_count(4)


def test_form_and_xml_are_switched_without_a_load(page):
    page.evaluate("window.stayed = true")
    page.get_by_role("button", name="XML", exact=True).click()
    document = page.get_by_role("textbox", name="SignedIdentifiers")
    expect(document).to_have_value(re.compile("<Id>partner-read</Id>"))
    document.fill(document.input_value().replace("<Id>partner-read</Id>", "<Id>partner-read"))
    expect(page.get_by_text("Fix the XML to see the impact.")).to_be_visible()
    document.fill(document.input_value().replace("<Id>partner-read", "<Id>partner</Id>"))
    page.get_by_role("button", name="Form", exact=True).click()
    expect(identifiers(page).first).to_have_value("partner")
    assert page.evaluate("window.stayed")
