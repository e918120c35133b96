"""A job in a real browser: in the tray, which stays open while it is renewed, and on its page."""

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_on_a_phone, confirm_identity

pytestmark = pytest.mark.long


def test_a_job_is_listed_cleared_from_the_tray_and_shown(open_page, admin, tables):
    page = open_page("/ui/a/devstoreaccount1/t/people/schema/", state=admin)
    confirm_identity(page)
    tray = page.locator("#job-tray")
    before = tray.bounding_box()
    page.locator("tr").filter(has_text="Age").get_by_role("button", name="Add index").first.click()
    expect(page.locator("#toasts")).to_contain_text("Indexing Age of people.")
    page.goto("/ui/jobs/?mine=1")
    row = page.locator("tbody tr").filter(has_text="Index Age of people")
    expect(row).to_contain_text("finished")
    check(page)
    tray.get_by_role("button").first.click()
    menu = page.locator("#job-menu")
    expect(menu).to_contain_text("Index Age of people")
    assert tray.bounding_box() == before
    check_axe(page, "#job-menu")
    menu.get_by_role("button", name="Clear finished jobs").click()
    expect(menu).to_contain_text("No job of yours is running.")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    row.get_by_role("link").first.click()
    expect(page.locator("#job")).to_contain_text("100 %")
    check(page)
    check_on_a_phone(page)
