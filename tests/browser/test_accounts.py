"""Home, search, accounts and their keys, as somebody uses them: the lines H, A and K of the acceptance list."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableServiceClient,
    generate_account_sas,
)

from tests.browser.page import check, check_axe

PASSWORD = "a password of many words"
KEY = re.compile(r"[A-Za-z0-9+/]{86}==")


@pytest.fixture
def open_signed_in(open_page, admin, tables):
    def open_it(path, **options):
        return open_page(path, state=admin, **options)

    return open_it


@pytest.fixture(scope="module")
def shop(chromium, console, admin):
    """An account with a colour and a label, made as an admin makes it; its connection string."""
    with chromium.new_context(base_url=console.url, locale="en-US", storage_state=admin) as context:
        page = context.new_page()
        page.goto("/ui/a/new/")
        name = page.get_by_label("Name", exact=True)
        name.press_sequentially("My Shop")
        page.locator("#name-rules .broken").first.wait_for()
        assert page.locator("#name-rules .broken").count() == 1
        name.fill("shop")
        page.locator("#name-rules:not(:has(.broken))").wait_for()
        page.get_by_role("textbox", name="Label (optional)").fill("Test")
        page.locator("label.colour", has_text="Teal").click()
        check_axe(page)
        page.get_by_role("button", name="Create account").click()
        page.wait_for_url("**/ui/a/shop/created/")
        check_axe(page)
        found = page.locator(".key-chip code").first.inner_text()
        page.goto("/ui/a/shop/created/")  # once
        assert page.url.endswith("/ui/a/shop/keys/")
        page.close()
    return found


def prove(page):
    """Who asks for a secret is asked who they are, and comes back."""
    page.wait_for_url("**/ui/me/again/**")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url("**/keys/**")


def test_a1_names_are_refused_where_they_are_typed(shop, open_signed_in):
    with TableServiceClient.from_connection_string(shop) as service:
        assert [table.name for table in service.list_tables()] == []
    page = open_signed_in("/ui/a/new/", java_script_enabled=False, expect=422)
    page.get_by_label("Name", exact=True).fill("shop")
    page.get_by_role("button", name="Create account").click()
    assert "An account with this name already exists" in page.locator("#name-rules").inner_text()
    assert page.get_by_label("Name", exact=True).get_attribute("aria-invalid") == "true"


def test_a4_colour_and_name_are_on_every_page(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/")
    links = page.get_by_role("navigation", name="Main navigation").get_by_role("link")
    addresses = [link.get_attribute("href") for link in links.all()]
    assert len(addresses) >= 5
    for address in (*addresses, "/ui/a/shop/delete/", "/ui/a/shop/tables/new/"):
        page.goto(address)
        assert page.locator(".band rect").get_attribute("fill") == "#0f8a82"
        assert "shop" in page.locator(".top .account").inner_text()
        assert "Test" in page.locator(".top .account").inner_text()
    page.goto("/ui/a/shop/delete/")
    assert "shop" in page.locator("main .which").inner_text()
    assert "shop" in page.get_by_role("button", name="Permanently delete").inner_text()


def test_a5_a_protected_account_cannot_be_deleted(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/settings/")
    page.get_by_label("Protected").check()
    page.get_by_role("button", name="Save protection").click()
    page.get_by_text("Saved the settings of shop.").wait_for()
    assert page.get_by_role("link", name="Delete shop").count() == 0
    page.goto("/ui/a/shop/delete/")
    assert page.get_by_text("shop is protected").is_visible()
    assert page.locator("main form").count() == 0
    page.goto("/ui/a/shop/settings/")
    page.get_by_label("Protected").uncheck()
    page.get_by_role("button", name="Save protection").click()
    page.get_by_text("Saved the settings of shop.").wait_for()


def test_a5_an_account_is_deleted_by_its_typed_name(shop, open_signed_in):
    page = open_signed_in("/ui/a/new/")
    page.get_by_label("Name", exact=True).fill("passing")
    page.get_by_role("button", name="Create account").click()
    page.wait_for_url("**/ui/a/passing/created/")
    page.goto("/ui/a/passing/delete/")
    check_axe(page)
    page.get_by_label("Account name").fill("passing")
    page.get_by_role("button", name="Permanently delete passing").click()
    page.get_by_text("Deleted the account passing.").wait_for()
    assert page.get_by_role("link", name="passing", exact=True).count() == 0


def test_a_read_only_account_refuses_writes_and_says_so(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/settings/")
    page.get_by_label("Read-only").check()
    page.get_by_role("button", name="Save protection").click()
    page.get_by_text("Saved the settings of shop.").wait_for()
    assert "read-only" in page.locator(".top .account").inner_text()
    with TableServiceClient.from_connection_string(shop) as service:
        with pytest.raises(HttpResponseError) as refusal:
            service.create_table("people")
        assert refusal.value.status_code == 403
        page.get_by_role("button", name="Undo").click()
        page.wait_for_load_state()
        service.create_table("people")


def test_k1_and_k4_a_key_is_revealed_after_a_proof_for_a_minute(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/keys/", reduced_motion="reduce", fresh=True)
    check(page)
    assert not KEY.search(page.content())
    page.clock.install()
    page.locator("#key-1-toggle").click()
    prove(page)
    assert not KEY.search(page.content())
    page.locator("#key-1-toggle").click()
    page.get_by_text("Hidden again in 60 seconds.").wait_for()
    (key,) = KEY.findall(page.content())
    assert f"AccountKey={key};" in shop
    assert page.evaluate("document.activeElement.id") == "key-1-toggle"
    check_axe(page)
    page.clock.fast_forward(61_000)
    page.get_by_text("Hidden again").wait_for(state="detached")
    assert not KEY.search(page.content())
    page.goto("/ui/a/shop/activity/")
    assert page.get_by_text("key1").count() > 0


def test_k3_copies_what_applications_connect_with(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/keys/", permissions=["clipboard-read", "clipboard-write"])
    page.locator("label.colour", has_text=".env file").click()
    page.wait_for_url("**format=env**")
    page.get_by_label("Client location").select_option("container")
    page.get_by_label("Host name of this server").fill("tables:10002")
    page.locator("#connection-text", has_text="http://tables:10002/shop").wait_for()
    page.get_by_label("Client location").select_option("here")
    page.locator("#connection-text", has_text=f"{page.url.split('/ui/')[0]}/shop").wait_for()
    assert not KEY.search(page.content())
    page.locator("#connection-copy").click()
    if "/again/" in page.url or page.locator("#connection-copy").count() == 0:
        prove(page)
        page.locator("#connection-copy").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f'TABLES_CONNECTION_STRING="{shop}"'
    assert not KEY.search(page.content())
    page.reload()
    assert page.get_by_label("Client location").input_value() == "here"


def test_k2_a_key_is_rotated_step_by_step(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/keys/2/rotate/")
    if "/again/" in page.url:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()
        page.get_by_role("heading", name="Rotate key2 of shop").wait_for()
    page.goto("/ui/a/shop/keys/")
    page.locator("#key-2-toggle").click()
    page.get_by_text("Hidden again in 60 seconds.").wait_for()
    (old,) = KEY.findall(page.content())
    page.goto("/ui/a/shop/keys/2/rotate/")
    use(KEY.sub(lambda _: old, shop), old)
    page.locator("#use").get_by_text("the entire account").wait_for(timeout=30_000)
    assert "azsdk-python-data-tables" in page.locator("#use").inner_text()
    check(page)
    page.get_by_label("Old key expires").select_option("After 1 hour")
    page.get_by_label("Account name").fill("shop")
    page.get_by_role("button", name="Rotate key2 of shop").click()
    page.get_by_text("The old key works until its grace period ends").wait_for()
    assert not KEY.search(page.content())
    use(shop)
    use(KEY.sub(lambda _: old, shop), old)
    page.get_by_role("button", name="Expire now").click()
    page.get_by_text("Expired key2 (old).").wait_for()
    with pytest.raises(ClientAuthenticationError):
        use(KEY.sub(lambda _: old, shop))


def use(connection_string, signing_key=None):
    """With its key, and with a token made with that, too."""
    with TableServiceClient.from_connection_string(connection_string) as service:
        list(service.list_tables())
        endpoint = service.url
    if signing_key is not None:
        token = generate_account_sas(
            AzureNamedKeyCredential("shop", signing_key),
            ResourceTypes(service=True, container=True),
            AccountSasPermissions(list=True, read=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        with TableServiceClient(endpoint, credential=AzureSasCredential(token)) as service:
            list(service.list_tables())


def test_h1_the_palette_finds_everything_by_keys_alone(shop, open_signed_in):
    page = open_signed_in("/ui/a/devstoreaccount1/")
    page.goto("/ui/a/devstoreaccount1/t/people/")
    page.goto("/ui/a/devstoreaccount1/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    field.wait_for()
    options = page.get_by_role("option")
    assert options.first.inner_text().split() == ["people", "devstoreaccount1"]  # opened last
    check_axe(page)
    field.press_sequentially("emp")
    page.locator("#palette-hits", has_text="empty").wait_for()
    chosen = field.get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    field.fill("o")
    page.locator("#palette-hits", has_text="shop").wait_for()
    before = field.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") != before
    page.keyboard.press("Escape")
    assert field.count() == 0
    page.locator(".search-field input[type=search]").click()
    field.fill("empty")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/empty/")


def test_search_without_scripts(shop, open_signed_in):
    page = open_signed_in("/ui/", java_script_enabled=False)
    page.locator(".search-field input[type=search]").fill("shop")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/search/**")
    assert page.get_by_role("main").get_by_role("link", name="shop").is_visible()
    page.locator(".search-field input[type=search]").fill("EMPTY")
    page.keyboard.press("Enter")
    page.wait_for_url("**/t/empty/")


def test_the_rail_closes_to_icons(shop, open_signed_in):
    page = open_signed_in("/ui/a/shop/", reduced_motion="reduce")
    rail = page.locator("#sidebar")
    page.get_by_role("button", name="Navigation").click()
    assert rail.bounding_box()["width"] == 56
    keys = rail.get_by_role("link", name="Keys")
    keys.hover()
    assert keys.locator("span").evaluate("it => getComputedStyle(it).opacity") == "1"
    check(page)
    page.reload()
    assert rail.bounding_box()["width"] == 56


def test_turkish_loads_few_fonts(open_page, admin):
    page = open_page("/ui/", state=admin, cookies={"tablero_language": "tr"}, fresh=True)
    page.wait_for_load_state("networkidle")
    fonts = page.evaluate(
        "performance.getEntriesByType('resource').filter(it => it.name.endsWith('.woff2'))"
        ".map(it => [it.name.split('/').pop(), it.transferSize])"
    )
    assert "inter-turkish.woff2" in dict(fonts)
    assert not any("latin-ext" in name for name, _ in fonts)
    assert sum(size for _, size in fonts) <= 60_000
