"""The service properties: rules are added and moved by keys, a meter follows, and leaving asks."""

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe, check_reflow

pytestmark = pytest.mark.long
PAGE = "/ui/a/devstoreaccount1/service/"


@pytest.fixture
def page(open_page, admin, service):
    service.set_service_properties(cors=[])
    yield open_page(PAGE, state=admin)
    service.set_service_properties(cors=[])


def add_rule(page, number):
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_role("heading", name=f"Rule {number}")).to_be_visible()
    expect(page.get_by_label("Allowed origins").nth(number - 1)).to_be_focused()


def test_five_rules_are_the_most_and_the_meter_counts_their_bytes(page):
    for number in range(1, 6):
        add_rule(page, number)
        page.keyboard.type("https://a.example ")
    check_axe(page, "main")
    expect(page.get_by_role("button", name="Add rule")).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("alert")).to_contain_text("Fix 5 errors")
    check_axe(page, "main")
    page.get_by_role("button", name="Remove rule 5").click()
    expect(page.get_by_role("heading", name="Rule 5")).to_have_count(0)
    checks = Held(page, f"**{PAGE}save/")
    for number in range(11):
        page.get_by_label("Allowed origins").first.fill(f"https://{number}{'x' * 200}.example,")
        if not number:
            checks.wait()
    checks.release()  # its answer comes before the newly typed text is sent
    expect(page.locator("#cors-meter .over")).to_contain_text("of 2,048 bytes")
    page.set_viewport_size({"width": 320, "height": 700})
    check_reflow(page)


def test_a_rule_is_moved_by_keys_and_keeps_the_focus(page):
    page.get_by_role("button", name="single origin").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("button", name="localhost for development").click()
    page.get_by_role("button", name="Move rule 2 up").press("Enter")
    expect(page.get_by_role("button", name="Move rule 1 up")).to_be_focused()
    expect(page.locator(".cors-rule").first).to_contain_text("http://localhost:3000")


def test_leaving_asks_while_something_is_not_saved(page):
    add_rule(page, 1)
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("dialog", name="Leave without saving?")).to_be_visible()
    check_axe(page, "dialog[open]")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Discard").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_have_count(0)
    page.get_by_role("link", name="Tables").click()
    page.wait_for_url("**/a/devstoreaccount1/")
