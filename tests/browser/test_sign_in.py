"""Sign-in with a password, codes, a passkey and a provider, in a browser with an authenticator of its own."""

import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import expect

from tests.browser.page import PATIENCE, Watch, check, check_axe
from tests.first_sign_in import sign_in_first
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, serving
from tests.live_server import ROOT, clean_environment, start_server
from tests.seeds import seeded

pytestmark = pytest.mark.long

# the other places are in the process of the tests, which may be slow to answer
PATIENT = {"storage.access.key_set": {"TIMEOUT": PATIENCE / 1000}}
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture(scope="module")
def elsewhere():
    with serving() as provider:
        yield provider


@pytest.fixture(scope="module")
def place(scratch, elsewhere):
    """Start a server that admits people of another provider."""
    settings = {
        "TABLERO_LOGIN_OIDC_ISSUER": elsewhere.url,
        "TABLERO_LOGIN_OIDC_CLIENT_ID": CLIENT_ID,
        "TABLERO_LOGIN_OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "TABLERO_LOGIN_OIDC_NAME": "Elsewhere",
        "TABLERO_LOGIN_OIDC_ADMITS": "everyone",
    }
    with start_server(seeded(scratch / "sign-in"), env=settings, constants=PATIENT) as live:
        yield live


@pytest.fixture
def person(place, request):
    """Add a user with a password, named after the test."""
    return add_user(place, request.node.name)


@pytest.fixture(scope="module")
def anybody(place):
    """Add a user for tests that leave nothing behind."""
    return add_user(place, "anybody")


def add_user(place, name):
    command = [sys.executable, str(ROOT / "manage.py"), "user", "--data", str(place.data), "add", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment())
    generated = done.stdout.split("password=")[1].strip()
    _session, chosen = sign_in_first(f"http://localhost:{place.port}", name, generated)
    return name, chosen


@pytest.fixture
def open_browser(pool, place):
    """Return `open_browser()`, which opens a page without a session, at a host name to which passkeys can be bound."""
    pages, watches = [], []

    def open_it(expect=200, **options):
        options = {"locale": "en-US", "reduced_motion": "reduce", **options}
        page = pool.take(base_url=f"http://localhost:{place.port}", **options)
        pages.append(page)
        watches.append(Watch(page, expect))
        return page

    yield open_it
    for watch in watches:
        watch.end()
    for page in pages:
        pool.give_back(page)
    assert [fault for watch in watches for fault in watch.faults] == []


def give_authenticator(page):
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})


def sign_in(page, person, address="/ui/login/"):
    name, password = person
    page.goto(address)
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page):
    page.goto("/ui/logout/")
    page.locator("main form button").click()
    arrive(page, "/ui/login/")


def arrive(page, path):
    page.wait_for_url(lambda url: urlsplit(url).path == path)


def expire(page):
    page.context.clear_cookies(name="tablero_session")


def test_a_passkey_signs_in_and_confirms(open_browser, person):
    page = open_browser(fresh=True)
    give_authenticator(page)
    sign_in(page, person)
    arrive(page, "/ui/")
    page.goto("/ui/me/security/")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name", exact=True).fill("My <b>laptop</b>")
    page.get_by_role("button", name="Create passkey").click()
    arrive(page, "/ui/me/security/codes/")  # for the day the device is lost
    check(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text().split() == page.locator(".codes code").all_inner_texts()
    sign_out(page)
    page.goto("/ui/login/?next=/ui/me/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    arrive(page, "/ui/me/")
    page.get_by_label("Compact").check()
    expire(page)
    page.get_by_role("button", name="Save preferences").click()
    page.locator("dialog#sign-in").get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("Saved your preferences.")).to_be_visible()

    page.goto("/ui/me/again/?next=/ui/me/security/")
    check(page)
    page.get_by_role("button", name="Use a passkey").click()
    arrive(page, "/ui/me/security/")
    expect(page.get_by_text("My <b>laptop</b>")).to_be_visible()


def test_a_second_factor_is_asked_for_on_a_page_and_in_a_dialog(open_browser, person):
    page = open_browser(expect=422)
    sign_in(page, person, "/ui/login/?next=/ui/me/security/app/")
    secret = page.locator(".secret code").inner_text()
    assert page.locator("img.qr").evaluate("it => it.complete && it.naturalWidth > 0")
    # the one after the current one, which stays valid should the current one change meanwhile
    used = code_of(secret, page, 1)
    page.get_by_label("Code from the app").fill(used)
    page.get_by_role("button", name="Turn on").click()
    arrive(page, "/ui/me/security/codes/")
    recovery_code = page.locator("main code").first.inner_text()
    sign_out(page)
    sign_in(page, person)
    arrive(page, "/ui/login/mfa/")
    check(page)
    current = code_of(secret, page)
    page.get_by_label("Code").fill(code_of(secret, page, 1) if current == used else current)
    page.get_by_role("button", name="Confirm").click()
    arrive(page, "/ui/")
    # when the session has expired, both steps happen in a dialog, and what was changed is saved
    page.goto("/ui/me/")
    page.get_by_text("Compact", exact=True).click()
    expire(page)
    page.get_by_role("button", name="Save preferences").click()
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog.get_by_label("User name")).to_have_value(person[0])
    dialog.get_by_label("Password").fill(person[1])
    dialog.get_by_role("button", name="Sign in", exact=True).click()
    second = page.get_by_role("dialog", name="Confirm your identity")
    expect(second.get_by_label("Code")).to_be_focused()
    expect(second).to_match_aria_snapshot("""
      - dialog "Confirm your identity":
        - heading "Confirm your identity" [level=2]
        - button "Close"
        - paragraph: Your changes are kept. The page continues after you sign in.
        - paragraph: Enter the code from your authenticator app, or a recovery code.
        - text: Code
        - textbox "Code"
        - button "Confirm"
        - button "Sign in as another user"
    """)
    check_axe(page)
    page.keyboard.type("000000")
    page.keyboard.press("Enter")
    second.get_by_text("This code is incorrect").wait_for()
    expect(second.get_by_label("Code")).to_be_focused()
    second.get_by_label("Code").fill(recovery_code)
    page.keyboard.press("Enter")
    page.locator(".toast", has_text="Saved your preferences.").wait_for()
    expect(page.get_by_role("radio", name="Compact")).to_be_checked()
    expect(second).not_to_be_visible()


def code_of(secret, page, step=0):
    return format_hotp_value(hotp_value(secret, page.evaluate("Math.floor(Date.now() / 30000)") + step))


def test_everything_can_be_pasted(open_browser, anybody):
    page = open_browser(permissions=["clipboard-read", "clipboard-write"])
    name, password = anybody
    page.goto("/ui/login/")
    for label, text in (("User name", name), ("Password", password)):
        page.evaluate("text => navigator.clipboard.writeText(text)", text)
        page.get_by_label(label).focus()
        page.keyboard.press("Control+V")
        expect(page.get_by_label(label)).to_have_value(text)
    page.keyboard.press("Enter")
    arrive(page, "/ui/")
    page.goto("/ui/me/password/")
    page.evaluate("text => navigator.clipboard.writeText(text)", "a password of many words")
    for label in ("Current password", "New password", "Confirm new password"):
        page.get_by_label(label, exact=True).focus()
        page.keyboard.press("Control+V")
        expect(page.get_by_label(label, exact=True)).to_have_value("a password of many words")


def test_single_letter_keys_can_be_disabled(open_browser, anybody):
    page = open_browser()
    sign_in(page, anybody, "/ui/login/?next=/ui/me/")
    arrive(page, "/ui/me/")
    page.keyboard.press("?")
    expect(page.locator("dialog#shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.get_by_role("button", name="Save preferences").click()
    arrive(page, "/ui/me/")
    expect(page.get_by_text("Saved your preferences.")).to_be_visible()
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("dialog#shortcuts")).not_to_be_visible()


def test_a_provider_signs_in(open_browser, anybody):
    """There and back: a page may post its form to the other place only as its policy allows."""
    page = open_browser()
    page.goto("/ui/login/?next=/ui/me/security/")
    check(page, within="body")
    page.get_by_role("button", name="Sign in with Elsewhere").click()
    arrive(page, "/ui/me/security/")
    expect(page.get_by_text("jane.doe", exact=True)).not_to_have_count(0)

    page.goto("/ui/me/")
    page.get_by_label("Compact").check()
    expire(page)
    page.get_by_role("button", name="Save preferences").click()
    page.locator("dialog#sign-in").get_by_role(
        "button", name="Sign in with Elsewhere"
    ).click()  # in another tab
    expect(page.get_by_text("Saved your preferences.")).to_be_visible()
