"""Notices in a real browser: a threshold, the bell, the list, muting, and a webhook that is refused."""

import re
from contextlib import suppress
from subprocess import CalledProcessError

from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_on_a_phone, confirm_identity

ACCOUNT = "/ui/a/noticed/notices/"  # its own, since other tests have notices too


def look(console):
    """Look for conditions; the command is refused while the server looks."""
    while True:
        with suppress(CalledProcessError):
            return console.manage("notice", "check", "noticed")


def test_from_a_threshold_to_a_mute_and_a_webhook_to_a_private_network(
    open_page, console, admin, tables, screenshots
):
    console.manage("account", "add", "noticed")
    console.manage("snapshot", "take", "noticed", "first")
    page = open_page(f"{ACCOUNT}settings/", state=admin)
    page.get_by_label("Threshold of “Quota of snapshots”").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    check(page, within="main")
    assert "1 of 100 snapshots" in look(console)

    bell, menu = page.locator("#notice-bell"), page.locator("#notice-menu")
    # the reader comes back to the tab
    bell.evaluate("it => (it.dataset.old = '')")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(bell).not_to_have_attribute("data-old", "")
    expect(menu).to_contain_text("noticed has 1 of 100 snapshots")

    page.goto("/ui/notices/")
    bell.get_by_role("button", name=re.compile("Notices: [1-9]")).click()
    expect(menu).to_contain_text("has 1 of 100 snapshots")
    check_axe(page, "#notice-menu")
    page.screenshot(path=screenshots / "notice-bell.png")
    menu.get_by_role("button", name="Mark all as seen").click()
    expect(bell.get_by_role("button").first).to_have_accessible_name("Notices: 0 new")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    check(page)
    check_on_a_phone(page, screenshots / "notice-list-dark-390.png")
    row = page.locator("tbody tr").filter(has_text="Quota of snapshots").filter(has_text="noticed")
    row.get_by_role("button", name="Mute: Quota of snapshots").click()
    row.get_by_role("button", name="Mute this one").click()
    expect(row).to_have_count(0)
    page.goto("/ui/me/notices/")
    page.get_by_role("button", name="Unmute: Quota of snapshots").click()
    expect(page.locator("main")).to_contain_text("No muted notices.")

    confirm_identity(page)
    page.goto(f"{ACCOUNT}webhooks/new/")
    page.get_by_label("Name").fill("chat")
    page.get_by_label("URL").fill(f"{console.url}/hook")
    page.get_by_role("button", name="Create webhook").click()
    expect(page.locator("main")).to_contain_text("whsec_")
    page.get_by_role("link", name="Test the webhook").click()
    page.get_by_role("button", name="Send test").click()
    expect(page.locator("#toasts")).to_contain_text("or it is in a private network.")
    check(page, within="main")
    check_on_a_phone(page, screenshots / "notice-webhook-dark-390.png")
    console.manage("account", "remove", "noticed")
