"""The palette, a new account and its keys: revealed for a minute after a proof, copied without being shown."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import check_axe, confirm_identity, patient

PASSWORD = "a password of many words"
KEY = re.compile(r"[A-Za-z0-9+/]{86}==")


@pytest.fixture
def open_signed_in(open_page, admin, tables):
    def open_it(path, **options):
        return open_page(path, state=admin, **options)

    return open_it


@pytest.fixture(scope="module")
def shop(chromium, console, admin):
    """Make an account with a colour and a label, as an admin does, and return its connection string."""
    made = chromium.new_context(base_url=console.url, locale="en-US", storage_state=admin)
    with patient(made) as context:
        page = context.new_page()
        page.goto("/ui/a/new/")
        name = page.get_by_label("Name", exact=True)
        name.press_sequentially("My Shop")
        page.locator("#name-rules .broken").first.wait_for()
        expect(page.locator("#name-rules .broken")).to_have_count(1)
        name.fill("shop")
        page.locator("#name-rules:not(:has(.broken))").wait_for()
        page.get_by_role("textbox", name="Label (optional)").fill("Test")
        page.locator("label.colour", has_text="Teal").click()
        check_axe(page, "main")
        page.get_by_role("button", name="Create account").click()
        page.wait_for_url("**/ui/a/shop/created/")
        check_axe(page, "main")
        result = page.locator(".key-chip code").first.inner_text()
        page.goto("/ui/a/shop/created/")  # once
        expect(page).to_have_url(re.compile("/ui/a/shop/keys/$"))
        page.close()
    return result


def prove(page, admin):
    """Confirm the user's identity in the dialog that appears over the page when it asks for a secret.

    Pages of other tests use the new key of the session, too.
    """
    dialog = page.locator("dialog#sign-in")
    expect(dialog.get_by_text("Enter your password to continue.")).to_be_visible()
    expect(dialog.get_by_text("The page continues after you sign in.")).to_be_hidden()
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Confirm").click()
    expect(dialog).not_to_be_visible()
    admin.update(page.context.storage_state())


@pytest.mark.long
def test_a_key_is_revealed_after_a_proof_for_a_minute(shop, open_signed_in, admin):
    page = open_signed_in("/ui/a/shop/keys/", reduced_motion="reduce", fresh=True)
    assert not KEY.search(page.content())
    page.clock.install()
    page.locator("#key-1-toggle").click()
    page.locator("dialog#sign-in").get_by_text("Enter your password to continue.").wait_for()
    check_axe(page, "dialog#sign-in")
    assert not KEY.search(page.content())
    prove(page, admin)
    page.get_by_text("Hidden again in 60 seconds.").wait_for()
    (key,) = KEY.findall(page.content())
    assert f"AccountKey={key};" in shop
    expect(page.locator("#key-1-toggle")).to_be_focused()
    check_axe(page, "main")
    page.clock.fast_forward(61_000)
    page.get_by_text("Hidden again").wait_for(state="detached")
    assert not KEY.search(page.content())
    page.goto("/ui/a/shop/activity/")
    expect(page.get_by_text("key1")).not_to_have_count(0)


@pytest.mark.long
def test_copies_connection_strings(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/keys/", permissions=["clipboard-read", "clipboard-write"])
    confirm_identity(page)
    page.locator("label.colour", has_text=".env file").click()
    page.wait_for_url("**format=env**")
    page.get_by_label("Client location").select_option("container")
    page.get_by_label("Host name of this server").fill("tables:10002")
    page.locator("#connection-text", has_text="http://tables:10002/shop").wait_for()
    page.get_by_label("Client location").select_option("here")
    page.locator("#connection-text", has_text=f"{page.url.split('/ui/')[0]}/shop").wait_for()
    assert not KEY.search(page.content())
    page.locator("#connection-copy").click()
    page.get_by_text("Copied", exact=True).wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f'TABLES_CONNECTION_STRING="{shop}"'
    assert not KEY.search(page.content())
    page.reload()
    expect(page.get_by_label("Client location")).to_have_value("here")


def test_the_palette_finds_everything_by_keys_alone(open_signed_in, service):
    service.create_table("opened")  # never before: a visit within a minute of another one is not recorded
    page = open_signed_in("/ui/a/devstoreaccount1/")
    page.goto("/ui/a/devstoreaccount1/t/opened/")
    page.goto("/ui/a/devstoreaccount1/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    field.wait_for()
    options = page.get_by_role("option")
    assert options.first.inner_text().split() == ["opened", "devstoreaccount1"]  # last
    check_axe(page, "#palette")
    field.press_sequentially("emp")
    page.locator("#palette[data-shown=emp]", has_text="empty").wait_for()
    chosen = field.get_attribute("aria-activedescendant")
    expect(page.locator(f"#{chosen}")).to_have_attribute("aria-selected", "true")
    field.fill("o")
    page.locator(
        "#palette[data-shown=o]", has_text="people"
    ).wait_for()  # the arrow key is for the results of "o"
    before = field.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    expect(field).not_to_have_attribute("aria-activedescendant", before)
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    page.locator(".search-field input[type=search]").click()
    field.fill("empty")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/empty/")
    service.delete_table("opened")


@pytest.mark.long
def test_a_short_page_of_a_coloured_account_does_not_scroll(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/members/", height=2000)
    page.locator("svg.band").wait_for()
    assert page.evaluate("document.documentElement.scrollHeight") == 2000
