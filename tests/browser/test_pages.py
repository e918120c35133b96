"""Every page, in every appearance and language."""

import pytest

from tests.browser.page import check, check_axe, check_reflow, check_structure

TABLE = "/ui/a/devstoreaccount1/t/people/"
PAGES = {
    "home": "/ui/",
    "tables": "/ui/a/devstoreaccount1/",
    "no such table": "/ui/a/devstoreaccount1/?q=zzz",
    "new table": "/ui/a/devstoreaccount1/tables/new/?name=1abc",
    "table settings": TABLE + "settings/",
    "service": "/ui/a/devstoreaccount1/service/?origin=https://a.example&method=GET",
    "service as XML": "/ui/a/devstoreaccount1/service/?view=xml",
    "entities": TABLE,
    "filtered": TABLE + "?f=Age+ge+30",
    "nothing matches": TABLE + "?f=Age+eq+1000",
    "empty table": "/ui/a/devstoreaccount1/t/empty/",
    "keys": "/ui/a/devstoreaccount1/keys/?format=python&host=container",
    "settings": "/ui/a/devstoreaccount1/settings/",
    "deletion": "/ui/a/devstoreaccount1/delete/",
    "new account": "/ui/a/new/?name=A",
    "search": "/ui/search/?q=e",
    "about": "/ui/about/",
    "limits": "/ui/help/limits/",
    "shortcuts": "/ui/help/shortcuts/",
    "profile": "/ui/me/",
    "security": "/ui/me/security/",
    "sessions": "/ui/me/sessions/",
}


@pytest.fixture
def open_signed_in(open_page, admin, tables):
    def open_it(path, **options):
        return open_page(path, state=admin, **options)

    return open_it


@pytest.mark.parametrize("page", PAGES)
def test_page(open_signed_in, page):
    found = open_signed_in(PAGES[page], reduced_motion="reduce")
    check(found)
    found.emulate_media(color_scheme="dark")
    found.set_viewport_size({"width": 320, "height": 640})
    check_axe(found)
    check_reflow(found)


@pytest.mark.parametrize("language", ["tr", "zh-hans"])
def test_languages(open_signed_in, language):
    found = open_signed_in("/ui/", cookies={"tablero_language": language}, width=320)
    for path in PAGES.values():
        found.goto(path)
        check_structure(found, language)
        check_reflow(found)


def test_without_javascript(open_signed_in):
    found = open_signed_in("/ui/", java_script_enabled=False)
    for path in PAGES.values():
        found.goto(path)
        assert found.locator("h1").is_visible()
        assert found.get_by_role("navigation", name="Main navigation").is_visible()


@pytest.mark.parametrize(("path", "status"), [("/ui/setup/", 404), ("/ui/nothing/", 404), ("/ui/me/", 200)])
def test_signed_out(open_page, admin, path, status):
    page = open_page(path, expect=status, width=320)
    check(page)
    if path == "/ui/me/":
        assert "/ui/login/?next=/ui/me/" in page.url


@pytest.mark.parametrize("path", ["/ui/a/nobody/", "/ui/a/devstoreaccount1/t/nothing/"])
def test_what_is_not_there(open_signed_in, path):
    check_axe(open_signed_in(path, expect=404))


def test_stored_markup_is_text(open_signed_in):
    page = open_signed_in(TABLE)
    assert page.get_by_text('<img src=x onerror="alert(1)">').count() > 0
    assert page.get_by_text("{{ 7|add:7 }}").count() > 0
    assert page.locator(".grid img, .grid script").count() == 0


def test_first_visit_is_light(open_signed_in):
    page = open_signed_in("/ui/me/")
    weights = {"page": 0, "fonts": 0}
    for entry in page.evaluate(
        "[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]"
        ".map(it => [it.name, it.transferSize])"
    ):
        weights["page"] += entry[1]
        weights["fonts"] += entry[1] if entry[0].endswith(".woff2") else 0
    assert weights["page"] <= 220_000
    assert weights["fonts"] <= 92_000


def test_pictures(open_signed_in, screenshots):
    """For the README, and for who looks at them."""
    for scheme in ("light", "dark"):
        page = open_signed_in(TABLE, width=1440, color_scheme=scheme)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=screenshots / f"entities-{scheme}.png")
    assert len(list(screenshots.glob("*.png"))) >= 2
