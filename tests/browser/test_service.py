"""The service properties: the lines R1 to R3 of the console's acceptance list."""

import pytest
from azure.data.tables import TableCorsRule
from playwright.sync_api import expect

from tests.browser.page import Held, check, check_axe, check_reflow

PAGE = "/ui/a/devstoreaccount1/service/"


@pytest.fixture
def open_service(open_page, admin, tables, service):
    service.set_service_properties(cors=[])
    yield lambda **options: open_page(PAGE, state=admin, **options)
    service.set_service_properties(cors=[])


def save(page):
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_text("Saved the service properties.").last).to_be_visible()


def test_r2_limits(open_service):
    page = open_service()
    for number in range(1, 6):
        page.get_by_role("button", name="Add rule").click()
        expect(page.get_by_role("heading", name=f"Rule {number}")).to_be_visible()
        expect(page.get_by_label("Allowed origins").nth(number - 1)).to_be_focused()
        page.keyboard.type("https://a.example ")
        if number == 2:
            check(page)
    expect(page.get_by_role("button", name="Add rule")).to_have_count(0)
    expect(page.get_by_text("You have reached the limit of 5 rules.")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("alert")).to_contain_text("Fix 5 errors")
    expect(page.get_by_text("InvalidXmlNodeValue").first).to_be_visible()
    check_axe(page, "main")
    page.get_by_role("button", name="Remove rule 5").click()
    expect(page.get_by_role("heading", name="Rule 5")).to_have_count(0)
    checks = Held(page, f"**{PAGE}save/")
    for number in range(11):
        page.get_by_label("Allowed origins").first.fill(f"https://{number}{'x' * 200}.example,")
        if not number:
            checks.wait()
    checks.release()  # its answer comes before what was typed since is sent
    expect(page.locator("#cors-meter .over")).to_contain_text("of 2,048 bytes")
    page.set_viewport_size({"width": 320, "height": 700})
    check_reflow(page)


def test_order_by_keyboard_and_undo(open_service):
    page = open_service()
    page.get_by_role("button", name="single origin").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("button", name="localhost for development").click()
    page.get_by_role("button", name="Move rule 2 up").press("Enter")
    expect(page.get_by_role("button", name="Move rule 1 up")).to_be_focused()
    expect(page.locator(".cors-rule").first).to_contain_text("http://localhost:3000")
    save(page)
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**{PAGE}")
    expect(page.locator(".cors-rule")).to_have_count(0)


def test_leaving_asks_when_something_is_not_saved(open_service):
    page = open_service()
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("dialog", name="Leave without saving?")).to_be_visible()
    check_axe(page, "dialog[open]")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Discard").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_have_count(0)
    page.get_by_role("link", name="Tables").click()
    page.wait_for_url("**/a/devstoreaccount1/")


def test_two_editors(open_service, service):
    page = open_service()
    page.get_by_role("button", name="single origin").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_label("Origin", exact=True).fill("https://other.example")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#verdict")).to_contain_text("CorsPreflightFailure")
    service.set_service_properties(cors=[TableCorsRule(["http://localhost:3000"], ["GET"])])
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.locator(".lines .different", has_text="localhost")).to_be_visible()
    expect(page.locator(".lines .different", has_text="app.example.org")).to_be_visible()
    check_axe(page, "main")
    page.get_by_role("button", name="Overwrite with mine").click()
    expect(page.get_by_text("Saved the service properties.").last).to_be_visible()
