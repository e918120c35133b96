"""The bell, which gets new notices while its page is open, and the list of notices with a muted one."""

import re
from contextlib import suppress
from subprocess import CalledProcessError

import pytest
from playwright.sync_api import expect

from tests.browser.page import check_axe, check_on_a_phone

pytestmark = pytest.mark.long
ACCOUNT = "/ui/a/noticed/notices/"  # its own, since other tests have notices too


@pytest.fixture
def page(open_page, console, admin):
    """Open a page before there is a notice."""
    console.manage("account", "add", "noticed")
    console.manage("snapshot", "take", "noticed", "first")
    page = open_page(f"{ACCOUNT}settings/", state=admin)
    page.get_by_label("Threshold of “Snapshots near quota”").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    assert "1 of 100 snapshots" in look(console)
    yield page
    console.manage("account", "remove", "noticed")


def look(console):
    """Look for conditions; the command is refused while the server looks."""
    while True:
        with suppress(CalledProcessError):
            return console.manage("notice", "check", "noticed")


def test_a_notice_is_shown_seen_and_muted(page):
    bell, menu = page.locator("#notice-bell"), page.locator("#notice-menu")
    expect(menu).to_contain_text("noticed has 1 of 100 snapshots")  # without a reload
    page.goto("/ui/notices/")
    bell.get_by_role("button", name=re.compile("Notices: [1-9]")).click()
    check_axe(page, "#notice-menu")
    menu.get_by_role("button", name="Mark all as seen").click()
    expect(bell.get_by_role("button").first).to_have_accessible_name("Notices: 0 new")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    check_axe(page, "main")
    check_on_a_phone(page)
    row = page.locator("tbody tr").filter(has_text="Snapshots near quota").filter(has_text="noticed")
    row.get_by_role("button", name="Mute: Snapshots near quota").click()
    row.get_by_role("button", name="Mute this one").click()
    expect(row).to_have_count(0)
