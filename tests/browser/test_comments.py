"""Comments in a browser: a thread that is answered or resolved among all of a table is drawn again in its place."""

import re

from playwright.sync_api import expect

PAGE = "/ui/a/devstoreaccount1/t/people/comments/"


def test_a_thread_among_those_of_a_table(open_page, admin, tables):
    page = open_page(PAGE, state=admin)
    page.locator("#main textarea").first.fill("Whose are these?")
    page.get_by_role("button", name="Comment", exact=True).click()
    page.locator("#main .comment .text", has_text="Whose are these?").wait_for()
    page.get_by_text("Reply", exact=True).first.click()
    page.locator("#main textarea:focus, #main details[open] textarea").first.fill("Ours.")
    page.locator("#main details[open]").get_by_role("button", name="Reply").click()
    expect(page.locator("#main .comment .text", has_text="Ours.")).to_be_visible()
    expect(page).to_have_url(re.compile(f"{PAGE}#thread-"))
    page.get_by_role("button", name="Resolve").click()
    expect(page.locator("#toasts")).to_contain_text("Resolved the thread")
    expect(page.get_by_role("button", name="Resolve")).to_have_count(0)
    page.locator("#toasts").get_by_role("button", name="Undo").last.click()
    expect(page.get_by_role("button", name="Resolve")).to_have_count(1)
