"""Every component, in every appearance."""

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_focus, check_reflow, check_structure
from tests.live_server import start_server
from tests.seeds import seeded

pytestmark = pytest.mark.long
KIT = "/ui/kit/"
# one after the other on one page
APPEARANCES = {
    "dark": {"color_scheme": "dark"},
    "forced colours": {"color_scheme": "light", "forced_colors": "active"},
    "more contrast": {"forced_colors": "none", "contrast": "more"},
}
NARROW = {"320 px": (320, 640), "400 %": (320, 256)}


def test_appearance(open_page):
    page = open_page(KIT)
    check_axe(page)
    check_reflow(page)
    for media in APPEARANCES.values():
        page.emulate_media(**media)
        check_axe(page, appearance_only=True)
    page.emulate_media(contrast="no-preference")
    for width, height in NARROW.values():
        page.set_viewport_size({"width": width, "height": height})
        check_reflow(page)
    page.emulate_media(color_scheme="dark")
    check_axe(page, appearance_only=True)


@pytest.mark.parametrize("width", [1280, 320])
def test_structure_and_focus(open_page, width):
    page = open_page(KIT, width=width, height=480)
    check_structure(page)
    assert len(check_focus(page)) > 20


@pytest.fixture(scope="module")
def console(scratch):
    """Start a server with the development pages."""
    with start_server(seeded(scratch / "kit"), env={"TABLERO_DEBUG": "1"}) as live:
        yield live


def test_theme_changes_at_once_and_stays(open_page):
    page = open_page(KIT, cookies={"tablero_density": "compact"})
    check_reflow(page)
    page.get_by_role("button", name="User menu").click()
    with page.expect_response("**/ui/appearance/"):
        page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 18, 23)"
    check_axe(page, appearance_only=True)
    page.goto(KIT)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_menu_by_keyboard(open_page):
    page = open_page(KIT)
    button = page.get_by_role("button", name="Menu", exact=True)
    button.press("Enter")
    expect(page.locator("#kit-menu")).to_be_visible()
    button.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent").strip() == "Copy as JSON"
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent").strip() == "Download"
    page.keyboard.press("Escape")
    expect(page.locator("#kit-menu")).to_be_hidden()
    expect(button).to_be_focused()


def test_dialog_gives_the_focus_back(open_page):
    page = open_page(KIT)
    page.get_by_role("button", name="Dialog").click()
    expect(page.get_by_role("dialog", name="Delete people")).to_be_visible()
    check_axe(page, "dialog[open]")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Dialog")).to_be_focused()


def test_copy(open_page):
    page = open_page(KIT, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy account name").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "acme"


def test_toasts(open_page):
    page = open_page(KIT + "?toast")
    expect(page.get_by_role("alert").filter(has_text="could not be read")).to_be_visible()
    page.get_by_text("Saved the profile.").locator("..").get_by_role("button").click()
    expect(page.get_by_text("Saved the profile.")).to_have_count(0)
    check_axe(page, "#toasts")
    # the newest is seen, with the number of those behind it; each comes back when those before it are gone
    toast = "<div class='toast' data-toast=''><p>{}</p><button data-dismiss>x</button></div>"
    for name in ("Saved one.", "Saved two.", "Saved three."):
        page.evaluate(
            "it => document.getElementById('toasts').insertAdjacentHTML('beforeend', it)", toast.format(name)
        )
    expect(page.get_by_text("Saved three.")).to_be_visible()
    expect(page.locator(".toast[data-behind='2']")).to_contain_text("Saved three.")
    expect(page.get_by_text("Saved two.")).to_be_hidden()
    page.locator(".toast", has_text="Saved three.").get_by_role("button").click()
    expect(page.get_by_text("Saved two.")).to_be_visible()


def test_drawer(open_page):
    page = open_page(KIT, width=390)
    link = page.get_by_role("link", name="people 10,000")
    expect(link).to_be_hidden()
    button = page.get_by_role("button", name="Navigation")
    button.click()
    expect(link).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    check_axe(page, "#sidebar")
    page.keyboard.press("Escape")
    link.wait_for(state="hidden")
    expect(button).to_be_focused()
    check_reflow(page)


KEYS = [
    ([], 2, 1),
    (["ArrowRight", "ArrowDown"], 3, 2),
    (["End"], 2, 12),
    (["End", "Home"], 2, 1),
    (["Control+End"], 25, 12),
    (["Control+End", "Control+Home"], 2, 1),
    (["PageDown"], 12, 1),
    (["PageDown", "PageDown", "PageDown", "PageUp"], 15, 1),
    (["ArrowUp"], 1, 1),
    (["ArrowLeft"], 2, 1),
]
WHERE = "[document.activeElement.parentElement.ariaRowIndex, document.activeElement.ariaColIndex].map(Number)"
IS_SEEN = """() => {
    const box = document.activeElement.getBoundingClientRect();
    const top = document.elementFromPoint(box.left + 4, box.top + box.height / 2);
    return document.activeElement.contains(top);
}"""


def test_grid_keys(open_page):
    page = open_page(KIT)
    for keys, row, column in KEYS:
        page.locator(".grid tbody td").first.click(position={"x": 3, "y": 3})  # beside its box and its link
        for key in keys:
            page.keyboard.press(key)
        assert page.evaluate(WHERE) == [row, column], keys
        expect(page.locator('.grid [tabindex="0"]')).to_have_count(1)
        # inside the region, and under no sticky header or column
        assert page.evaluate(IS_SEEN), keys


def test_the_first_page_of_a_new_server(open_page, console):
    address = next(word for line in console.output for word in line.split() if "/ui/setup/#token=" in word)
    page = open_page(address)
    page.get_by_role("heading", name="Welcome to Tablero").wait_for()  # its script has posted the token
    check(page, within="body")
