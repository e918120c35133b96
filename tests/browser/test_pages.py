"""Every page that the console declares, at each width and in each mode."""

import re
from urllib.parse import urljoin

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.page import (
    Watch,
    check,
    check_axe,
    check_enlarged,
    check_focus,
    check_lengthened,
    check_reflow,
    check_stability,
    check_structure,
    confirm_identity,
)
from tests.console.addresses import ANSWERS, ARGUMENTS, NO_PAGES

TABLE = "/ui/a/devstoreaccount1/t/people/"
ENTITY = "?pk=se&rk="
SHOWN = [name for name, methods in ANSWERS.items() if methods.get("GET", {}).get("ada") == 200]
ASKS = (  # again who it is
    "people:api_token_new", "mfa_activate_totp", "mfa_add_webauthn", "notices:webhook_new",
    "notices:server_webhook_new", "accounts:key_rotate",
)  # fmt: skip
# pages that show more than one state, or need more than the arguments they have elsewhere: relative addresses
STATES = {
    "tables:index": ("", "?q=zzz"),
    "tables:new": ("?name=1abc",),
    "accounts:service": ("?origin=https://a.example&method=GET", "?view=xml"),
    "accounts:keys": ("?format=python&host=container",),
    "accounts:new": ("?name=A",),
    "entities:index": (
        "", "?f=Age+ge+55&by=rows", "?f=Age+eq+1000", "?view=json&top=25", "../empty/",
    ),
    "entities:show": (ENTITY, f"{ENTITY}&tab=json", f"{ENTITY}&tab=snippets"),
    "entities:key": (ENTITY,),
    "entities:value": (f"{ENTITY}&property=Long",),
    "home:search": ("?q=e",),
    "people:user": ("../1/",),
    "activity:index": ("", "?what=tables&who=nobody"),
    "requests:index": ("?span=week",),
    "queries:index": ("", "?tab=recent"),
    "queries:new": ("?f=Age+ge+30&top=25",),
    "queries:facets": ("?f=Age+ge+30",),
    "queries:code": ("?f=contains(Name,'a')&lang=curl",),
    "policies:show": ("", "?view=xml"),
    "sas:index": ("?q=zzz",),
    "sas:new": ("?table=people&spk=se&expiry=at",),
    "bulk_edit:show": ("?f=Age+ge+30&0-op=set&0-property=Age&0-expression=Age+%2B+1",),
}  # fmt: skip
PAGES = [
    (name, state)
    for name in dict.fromkeys([*SHOWN, *ASKS, *STATES])
    if name not in NO_PAGES
    for state in STATES.get(name, ("",))
]
NAMES = {"acme": "devstoreaccount1", "access": "console"}  # arguments elsewhere, and here
# one of each kind
SAMPLE = [
    ("home:index", ""), ("tables:index", ""), ("entities:index", ""), ("entities:show", ENTITY),
    ("activity:table", ""), ("policies:show", ""), ("sas:new", "?table=people&spk=se&expiry=at"),
    ("accounts:settings", ""), ("compare:index", ""),
]  # fmt: skip
LANGUAGES = {"tr": SAMPLE, "zh-hans": SAMPLE[2:5]}
QUICK = SAMPLE[1:4]  # pages of the default tier
SCREEN, PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
# only the first ones of many similar elements are checked
THIN_OUT = """
() => {
    for (const it of document.querySelectorAll("main :is(tbody, ul, ol, dl, div, section, g)")) {
        const alike = [...it.children].filter(child => child.tagName === it.firstElementChild.tagName);
        if (alike.length > 8) for (const child of alike.slice(6)) child.remove();
    }
}
"""


def address(page):
    name, state = page
    return urljoin(reverse(name, args=[NAMES.get(it, it) for it in ARGUMENTS[name]]), state)


@pytest.fixture
def open_signed_in(open_page, admin, tables):
    def open_it(path, **options):
        page = open_page(path, state=admin, **options)
        prove(page)
        return page

    return open_it


def prove(page):
    """Confirm the user's identity if the page asks for it."""
    if "/ui/me/again/" in page.url:
        confirm_identity(page)


@pytest.fixture(scope="module")
def kept(pool, console, admin, tables):
    """Open one page for all addresses, because a browser of its own costs as much as most of them."""
    page = pool.take(base_url=console.url, locale="en-US", state=admin, reduced_motion="reduce")
    watch = Watch(page, 200)
    yield page, watch
    watch.end()
    pool.give_back(page)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=() if page in QUICK else pytest.mark.long, id="".join(page))
        for number, page in enumerate(PAGES)
    ],
)
def test_page(kept, number):
    """Load a page once, on a screen or on a phone in turn, and look at it in all other ways without another load.

    Not each width is combined with each mode and each check: rules of structure do not depend on colors, and what comes
    late moves the same parts of pages that share their layout.
    """
    page, watch = kept
    watch.faults.clear()
    page.emulate_media(color_scheme="light")
    page.set_viewport_size((SCREEN, PHONE)[number % 2])
    page.goto(address(PAGES[number]))
    prove(page)
    check_stability(page)
    page.set_viewport_size(SCREEN)
    check_reflow(page)
    check_enlarged(page)
    page.set_viewport_size(PHONE)
    check_reflow(page)
    page.set_viewport_size(SCREEN)
    page.evaluate(THIN_OUT)
    within = "body" if PAGES[number] in SAMPLE else "main"
    check_axe(page, within)
    check_structure(page)
    check_focus(page, within)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    check_axe(page, within, appearance_only=True)
    check_lengthened(page)
    assert watch.faults == []


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(open_signed_in, language):
    """The pages are shown on a phone; their language and long words are checked without a browser."""
    result = open_signed_in("/ui/", cookies={"tablero_language": language}, width=320)
    for page in LANGUAGES[language]:
        result.goto(address(page))
        expect(result.locator("html")).to_have_attribute("lang", language)
        check_reflow(result)


@pytest.mark.long
def test_documents_on_a_phone(open_signed_in):
    page = open_signed_in("/ui/help/", width=320)
    links = page.locator("main a[href^='/ui/help/']")
    addresses = links.evaluate_all("all => [...new Set(all.map(it => it.pathname))]")
    assert "/ui/help/deployment/" in addresses
    for address in addresses:
        page.goto(address)
        check_reflow(page)


@pytest.mark.long
def test_without_javascript(open_signed_in):
    result = open_signed_in("/ui/", java_script_enabled=False)
    for page in SAMPLE:
        result.goto(address(page))
        prove(result)
        expect(result.locator("h1")).to_be_visible()
        expect(result.get_by_role("navigation", name="Main navigation")).to_be_visible()
    result.goto(TABLE)
    result.get_by_role("link", name="Next").click()
    expect(result.locator(".pager")).to_contain_text("51 to 60")
    result.get_by_label("$filter").fill("Age lt 3")
    result.get_by_role("button", name="Run").click()
    expect(result.locator(".grid tbody tr")).to_have_count(3)


@pytest.mark.long
@pytest.mark.parametrize(("path", "status"), [("/ui/setup/", 404), ("/ui/nothing/", 404), ("/ui/me/", 200)])
def test_signed_out(open_page, admin, path, status):
    page = open_page(path, expect=status, width=320)
    check(page, within="body")
    if path == "/ui/me/":
        expect(page).to_have_url(re.compile(re.escape("/ui/login/?next=/ui/me/")))


@pytest.mark.long
def test_an_invitation_is_shown_to_a_stranger(open_page, open_signed_in):
    owner = open_signed_in("/ui/a/devstoreaccount1/members/")
    form = owner.get_by_role("region", name="Invite by link")
    form.get_by_label("Recipient").fill("Vera")
    form.get_by_label("Role").select_option("Viewer")
    form.get_by_role("button", name="Create link").click()
    check_axe(owner, "main")
    link = owner.get_by_role("status", name="Invitation link for Vera").inner_text()
    page = open_page(re.search(r"\S+/ui/join/#token=\S+", link)[0])
    page.get_by_role("heading", name="Join devstoreaccount1").wait_for()  # its script has posted the token
    check(page, within="body")


@pytest.mark.long
@pytest.mark.parametrize("path", ["/ui/a/nobody/", "/ui/a/devstoreaccount1/t/nothing/"])
def test_missing_pages_are_accessible(open_signed_in, path):
    check_axe(open_signed_in(path, expect=404))


def test_stored_markup_is_text(open_signed_in):
    page = open_signed_in(TABLE)
    expect(page.get_by_text('<img src=x onerror="alert(1)">')).not_to_have_count(0)
    expect(page.get_by_text("{{ 7|add:7 }}")).not_to_have_count(0)
    expect(page.locator(".grid img, .grid script")).to_have_count(0)


@pytest.mark.long
def test_first_visit_is_light(open_signed_in):
    page = open_signed_in("/ui/me/", fresh=True)
    weights = {"page": 0, "fonts": 0}
    for entry in page.evaluate(
        "[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]"
        ".map(it => [it.name, it.transferSize])"
    ):
        weights["page"] += entry[1]
        weights["fonts"] += entry[1] if entry[0].endswith(".woff2") else 0
    assert weights["page"] <= 220_000
    assert weights["fonts"] <= 92_000


@pytest.mark.long
def test_turkish_loads_few_fonts(open_signed_in):
    page = open_signed_in("/ui/", cookies={"tablero_language": "tr"}, fresh=True)
    page.evaluate("document.fonts.ready")
    fonts = page.evaluate(
        "performance.getEntriesByType('resource').filter(it => it.name.endsWith('.woff2'))"
        ".map(it => [it.name.split('/').pop(), it.transferSize])"
    )
    assert "inter-turkish.woff2" in dict(fonts)
    assert not any("latin-ext" in name for name, _ in fonts)
    assert sum(size for _, size in fonts) <= 60_000
