"""Every page, in every appearance and language, for everybody."""

import re
from urllib.parse import urlsplit

import pytest
from django.urls import resolve
from playwright.sync_api import expect

from tests.browser.page import (
    Watch,
    check,
    check_axe,
    check_enlarged,
    check_lengthened,
    check_reflow,
    check_stability,
    confirm_identity,
    patient,
)
from tests.console.addresses import ANSWERS, NO_PAGES

TABLE = "/ui/a/devstoreaccount1/t/people/"
PAGES = {
    "home": "/ui/",
    "tables": "/ui/a/devstoreaccount1/",
    "no such table": "/ui/a/devstoreaccount1/?q=zzz",
    "new table": "/ui/a/devstoreaccount1/tables/new/?name=1abc",
    "table settings": TABLE + "settings/",
    "schema": TABLE + "schema/",
    "history": TABLE + "history/",
    "snapshots": "/ui/a/devstoreaccount1/snapshots/",
    "new snapshot": "/ui/a/devstoreaccount1/snapshots/new/",
    "new branch": "/ui/a/devstoreaccount1/snapshots/branch/",
    "compare": "/ui/a/devstoreaccount1/compare/",
    "overview": "/ui/a/devstoreaccount1/overview/",
    "service": "/ui/a/devstoreaccount1/service/?origin=https://a.example&method=GET",
    "service as XML": "/ui/a/devstoreaccount1/service/?view=xml",
    "entities": TABLE,
    "filtered": TABLE + "?f=Age+ge+55&by=rows",
    "properties to read": TABLE + "query/select/",
    "nothing matches": TABLE + "?f=Age+eq+1000",
    "empty table": "/ui/a/devstoreaccount1/t/empty/",
    "keys": "/ui/a/devstoreaccount1/keys/?format=python&host=container",
    "settings": "/ui/a/devstoreaccount1/settings/",
    "deletion": "/ui/a/devstoreaccount1/delete/",
    "new account": "/ui/a/new/?name=A",
    "search": "/ui/search/?q=e",
    "inspector": "/ui/inspect/",
    "about": "/ui/about/",
    "limits": "/ui/help/limits/",
    "shortcuts": "/ui/help/shortcuts/",
    "help": "/ui/help/",
    "components": "/ui/kit/",
    "new link": "/ui/links/new/",
    "document": "/ui/help/console/",
    "profile": "/ui/me/",
    "security": "/ui/me/security/",
    "sessions": "/ui/me/sessions/",
    "API tokens": "/ui/me/tokens/",
    "new API token": "/ui/me/tokens/new/",
    "management API": "/ui/api/docs/",
    "new app": "/ui/me/security/app/",
    "new passkey": "/ui/me/security/passkeys/",
    "members": "/ui/a/devstoreaccount1/members/",
    "users": "/ui/u/",
    "user": "/ui/u/1/",
    "activity": "/ui/a/devstoreaccount1/activity/",
    "activity of tables": "/ui/a/devstoreaccount1/activity/?what=tables&who=nobody",
    "requests": "/ui/a/devstoreaccount1/requests/?span=week",
    "server activity": "/ui/activity/",
    "metrics": "/ui/a/devstoreaccount1/metrics/",
    "metrics of a table": TABLE + "metrics/",
    "notices": "/ui/notices/",
    "notices of an account": "/ui/a/devstoreaccount1/notices/",
    "notice rules": "/ui/a/devstoreaccount1/notices/settings/",
    "notice rules of the server": "/ui/notices/settings/",
    "my notices": "/ui/me/notices/",
    "new webhook": "/ui/a/devstoreaccount1/notices/webhooks/new/",
    "new webhook of the server": "/ui/notices/webhooks/new/",
    "new table from a file": "/ui/a/devstoreaccount1/import/",
    "import": TABLE + "import/",
    "copy tables": "/ui/a/devstoreaccount1/copy/",
    "copy a file of Azurite": "/ui/a/devstoreaccount1/copy/file/",
    "jobs": "/ui/jobs/",
    "replicas": "/ui/replicas/",
    "backups": "/ui/backups/",
    "queries": "/ui/a/devstoreaccount1/queries/",
    "queries that ran": "/ui/a/devstoreaccount1/queries/?tab=recent",
    "new query": TABLE + "queries/new/?f=Age+ge+30&top=25",
    "rotation": "/ui/a/devstoreaccount1/keys/1/rotate/",
    "as JSON": TABLE + "?view=json&top=5",
    "one by one": TABLE + "?view=form",
    "facets": TABLE + "facets/?f=Age+ge+30",
    "code": TABLE + "code/?f=contains(Name,'a')&lang=curl",
    "policies": TABLE + "acl/",
    "policies as XML": TABLE + "acl/?view=xml",
    "signatures": "/ui/a/devstoreaccount1/sas/?q=zzz",
    "new signature": "/ui/a/devstoreaccount1/sas/new/?table=people&spk=se&expiry=at",
    "columns": TABLE + "columns/",
    "comments": TABLE + "comments/",
    "export": TABLE + "export/",
    "paste": TABLE + "paste/",
    "bulk edit": TABLE + "bulk/?f=Age+ge+30&0-op=set&0-property=Age&0-expression=Age+%2B+1",
    "entity": TABLE + "entity/?pk=se&rk=",
    "entity as JSON": TABLE + "entity/?pk=se&rk=&tab=json",
    "snippets": TABLE + "entity/?pk=se&rk=&tab=snippets",
    "new entity": TABLE + "entity/new/",
    "new key": TABLE + "entity/key/?pk=se&rk=",
    "value": TABLE + "value/?pk=se&rk=&property=Long",
}

# parts that come by themselves, and modules of its own
LOADS_MORE = "main [hx-trigger*=load], script[src*='/console/']:not([src$='/main.js'])"
# one of each kind
SAMPLE = (
    "home",
    "tables",
    "entities",
    "entity",
    "history",
    "policies",
    "new signature",
    "settings",
    "compare",
)
LANGUAGES = {"tr": SAMPLE, "zh-hans": ("entities", "entity", "history")}
# the largest, with much beside each other
SCREEN, PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 640}
# of many alike the first ones are looked at closely
THIN_OUT = """
() => {
    for (const it of document.querySelectorAll("main :is(tbody, ul, ol, dl, div, section, g)")) {
        const alike = [...it.children].filter(child => child.tagName === it.firstElementChild.tagName);
        if (alike.length > 8) for (const child of alike.slice(6)) child.remove();
    }
}
"""


def test_every_page_is_here():
    seen = {resolve(urlsplit(path).path).view_name for path in PAGES.values()}
    shown = {name for name, methods in ANSWERS.items() if methods.get("GET", {}).get("ada") == 200}
    assert shown - seen == NO_PAGES


@pytest.fixture
def open_signed_in(open_page, admin, tables):
    def open_it(path, **options):
        page = open_page(path, state=admin, **options)
        prove(page)
        return page

    return open_it


def prove(page):
    """Some pages ask again who it is."""
    if "/ui/me/again/" in page.url:
        confirm_identity(page)


@pytest.fixture(scope="module")
def kept(chromium, console, admin, tables):
    """One page for all addresses, since a browser of its own costs as much as most of them."""
    made = chromium.new_context(
        base_url=console.url, locale="en-US", storage_state=admin, reduced_motion="reduce"
    )
    with patient(made) as context:
        page = context.new_page()
        yield page, Watch(page, 200)


@pytest.fixture
def look_at(kept):
    page, watch = kept
    watch.faults.clear()

    def look_at(path, width=1280):
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path)
        prove(page)
        return page

    yield look_at
    assert watch.faults == []


@pytest.mark.parametrize("page", PAGES)
def test_page(look_at, page):
    found = look_at(PAGES[page])
    check_stability(found)
    loads_more = found.locator(LOADS_MORE).count() > 0
    check_reflow(found)
    check_enlarged(found)
    found.set_viewport_size(PHONE)
    check_reflow(found)
    found.set_viewport_size(SCREEN)
    found.evaluate(THIN_OUT)
    within = "body" if page in SAMPLE else "main"
    check(found, within=within)
    found.emulate_media(color_scheme="dark")
    found.set_viewport_size(PHONE)
    check_axe(found, within, appearance_only=True)
    check_lengthened(found)
    if page in SAMPLE or loads_more:  # what comes late must not move anything on a phone either
        check_stability(look_at(PAGES[page], width=390))


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(open_signed_in, language):
    """On a phone; that every page is in the language is seen without a browser, and long words on each page."""
    found = open_signed_in("/ui/", cookies={"tablero_language": language}, width=320)
    for page in LANGUAGES[language]:
        found.goto(PAGES[page])
        expect(found.locator("html")).to_have_attribute("lang", language)
        check_reflow(found)


def test_without_javascript(open_signed_in):
    found = open_signed_in("/ui/", java_script_enabled=False)
    for page in SAMPLE:
        found.goto(PAGES[page])
        prove(found)
        expect(found.locator("h1")).to_be_visible()
        expect(found.get_by_role("navigation", name="Main navigation")).to_be_visible()


@pytest.mark.parametrize(("path", "status"), [("/ui/setup/", 404), ("/ui/nothing/", 404), ("/ui/me/", 200)])
def test_signed_out(open_page, admin, path, status):
    page = open_page(path, expect=status, width=320)
    check(page, within="body")
    if path == "/ui/me/":
        expect(page).to_have_url(re.compile(re.escape("/ui/login/?next=/ui/me/")))


def test_somebody_invited_joins(open_page, open_signed_in):
    owner = open_signed_in("/ui/a/devstoreaccount1/members/")
    form = owner.get_by_role("region", name="Invite by link")
    form.get_by_label("Recipient").fill("Vera")
    form.get_by_label("Role").select_option("Viewer")  # others are asked for access, as other tests see
    form.get_by_role("button", name="Create link").click()
    check_axe(owner, "main")
    link = owner.get_by_role("status", name="Invitation link for Vera").inner_text()
    page = open_page(re.search(r"\S+/ui/join/\?token=\S+", link)[0])
    check(page, within="body")
    page.get_by_label("User name").fill("vera")
    page.get_by_label("Password", exact=True).fill("a password of many words")
    page.get_by_label("Confirm password").fill("a password of many words")
    page.get_by_role("button", name="Create user and join").click()
    page.wait_for_url("**/ui/a/devstoreaccount1/")


@pytest.mark.parametrize("path", ["/ui/a/nobody/", "/ui/a/devstoreaccount1/t/nothing/"])
def test_what_is_not_there(open_signed_in, path):
    check_axe(open_signed_in(path, expect=404))


def test_stored_markup_is_text(open_signed_in):
    page = open_signed_in(TABLE)
    expect(page.get_by_text('<img src=x onerror="alert(1)">')).not_to_have_count(0)
    expect(page.get_by_text("{{ 7|add:7 }}")).not_to_have_count(0)
    expect(page.locator(".grid img, .grid script")).to_have_count(0)


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
