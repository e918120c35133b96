"""Two people in one table: presence, changes of the other person, comments and short links."""

import re

import pytest
from azure.data.tables import TableServiceClient
from playwright.sync_api import expect

from tests.browser.new_users import sign_in_first
from tests.browser.page import check_axe, patient

pytestmark = pytest.mark.long
TABLE = "/ui/a/devstoreaccount1/t/shared/"


@pytest.fixture
def rows(console):
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        service.delete_table("shared")
        table = service.create_table("shared")
        for name in ("ada", "alan"):
            table.upsert_entity({"PartitionKey": "p", "RowKey": name, "Score": 1})
        yield table
        table.close()


@pytest.fixture(scope="module")
def bob(chromium, console, admin):
    """Return the cookies of a second person, who is an editor in the account."""
    added = console.manage("user", "add", "bob.b")
    console.manage("user", "role", "bob.b", "devstoreaccount1", "editor")
    with patient(chromium.new_context(base_url=console.url, locale="en-US")) as context:
        page = context.new_page()
        page.goto("/ui/login/")
        sign_in_first(page, "bob.b", added.rpartition("password=")[2].strip())
        state = context.storage_state()
    yield state
    console.manage("user", "remove", "bob.b")


def test_presence_appears_and_goes_and_changes_are_told(open_page, admin, bob, rows):
    ada = open_page(TABLE, state=admin)
    expect(ada.locator("tr[data-key]")).to_have_count(2)
    expect(ada.locator("#presence")).to_be_hidden()
    other = open_page(TABLE, state=bob)
    expect(ada.locator("#presence .avatar")).to_have_attribute("title", "bob.b")
    expect(other.locator("#presence .avatar")).to_have_attribute("title", "ada@example.org")
    check_axe(ada, "#presence")

    for page in (ada, other):
        page.locator("tr[data-key] a.open").first.focus()
        page.keyboard.press("Enter")
    also = ada.locator("#drawer [data-also-here]")
    expect(also).to_contain_text("bob.b")
    expect(other.locator("#drawer [data-also-here]")).to_contain_text("ada@example.org")

    other.locator("#drawer [data-property] [data-value]").first.fill("7")
    other.get_by_role("button", name="Save 1 change").click()
    told = ada.locator("#drawer [data-outdated]")
    expect(told).to_contain_text("This entity was changed while you had it open.")
    expect(told).to_contain_text("bob.b")
    expect(told.locator("li")).to_have_text(re.compile(r"Score:\s*1\s*→\s*7"))
    expect(other.locator("[data-outdated]")).to_have_count(0)
    check_axe(ada, "#drawer")
    # axe leaves empty ones, which htmx would copy
    ada.evaluate("document.querySelectorAll('[style]').forEach(it => it.removeAttribute('style'))")
    told.get_by_role("link", name="Load the changes").click()
    expect(ada.locator("#drawer [data-property] [data-value]").first).to_have_value("7")
    expect(told).to_have_count(0)

    other.goto("/ui/")
    expect(ada.locator("#presence")).to_be_hidden()
    expect(also).to_be_hidden()


def test_a_mention_appears_in_the_bell_of_the_other(open_page, admin, bob, rows):
    page = open_page(TABLE, state=admin)
    page.locator("tr[data-key] a.open").first.focus()
    page.keyboard.press("Enter")
    page.locator("#drawer").get_by_role("link", name="Comments").click()
    field = page.locator("#new-comment")
    field.press_sequentially("Please look, @bo")
    expect(page.locator("[data-mention]")).to_have_text(["bob.b"])
    page.keyboard.press("Enter")
    expect(field).to_have_value("Please look, @bob.b ")
    check_axe(page, "#drawer")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#drawer .comment .mention")).to_have_text("@bob.b")
    page.reload()
    expect(page.locator("tr[data-key] a.open[data-mark='1']")).to_have_count(1)

    other = open_page("/ui/", state=bob)
    other.get_by_role("button", name=re.compile("Notices")).click()
    notice = other.get_by_role("link", name=re.compile("mentioned you in a comment on shared: p, ada"))
    notice.or_(other.locator("a[href*='/comments/']")).first.click()
    expect(other.locator(".comment .text")).to_contain_text("Please look")
    expect(other.locator("[data-also-here]")).to_be_visible()  # it moves the elements below
    other.get_by_role("button", name="Resolve").click()
    expect(other.get_by_text("1 resolved thread")).to_be_visible()


def test_a_short_link_opens_the_shown_page(open_page, admin, bob, rows):
    page = open_page(f"{TABLE}?f=Score+eq+1", state=admin, permissions=["clipboard-read", "clipboard-write"])
    page.locator("tr[data-key] a.open").first.focus()
    page.keyboard.press("Enter")
    page.locator("#drawer [data-entity]").wait_for()
    page.locator("#drawer [data-drawer-close]").focus()
    page.keyboard.press("Alt+l")
    expect(page.locator("#toasts")).to_contain_text("/ui/s/")
    link = page.evaluate("navigator.clipboard.readText()")
    other = open_page(link.partition("/ui/")[1] + link.partition("/ui/")[2], state=bob)
    assert other.url == page.url
    expect(other.locator("#drawer [data-entity]")).to_be_visible()
