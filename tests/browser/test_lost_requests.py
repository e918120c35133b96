"""Typed text survives an expired session, a lost connection, a deleted table and a reload."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe, intercept

PASSWORD = "a password of many words"
ACCOUNT = "/ui/a/devstoreaccount1/"
SAVE = re.compile("^Save( \\d+ changes?)?$")


@pytest.fixture(scope="module")
def kept(service):
    with service.create_table("kept") as table:
        for number in range(3):
            table.create_entity({"PartitionKey": "se", "RowKey": f"{number}", "Name": "Ada", "Age": 36})
        yield table


@pytest.fixture
def page(pool, console, admin, kept):
    """Open a page of the admin, in which requests may fail."""
    page = pool.take(base_url=console.url, state=admin, width=1440, locale="en-US", reduced_motion="reduce")
    yield page
    page.context.set_offline(False)
    pool.give_back(page)


def expire(page):
    page.context.clear_cookies(name="tablero_session")


def sign_in(page):
    dialog = page.locator("dialog#sign-in")
    expect(dialog.get_by_label("User name")).to_have_value("ada@example.org")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in", exact=True).click()


def said(page, text):
    page.locator(".toast", has_text=text).last.wait_for()


def open_drawer(page):
    page.goto(f"{ACCOUNT}t/kept/")
    page.locator("a[data-drawer]").first.click()
    name = page.locator("#drawer").get_by_label("Name", exact=True)
    name.wait_for()
    return name, page.locator("#drawer").get_by_role("button", name=SAVE)


def test_an_expired_session_is_renewed_in_a_dialog(page, kept):
    name, save = open_drawer(page)
    name.fill("Grace")
    expire(page)
    save.click()
    dialog = page.locator("dialog#sign-in")
    dialog.get_by_label("Password").fill("wrong")
    check_axe(page, "dialog#sign-in")
    dialog.get_by_role("button", name="Sign in", exact=True).click()
    dialog.get_by_text("Incorrect user name or password.").wait_for()
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(name).to_have_value("Grace")
    save.click()
    sign_in(page)
    said(page, "Saved 1 property")
    assert kept.get_entity("se", "0")["Name"] == "Grace"
    name.fill("Hedy")  # with the token of the new session
    save.click()
    expect(page.locator(".toast", has_text="Saved 1 property")).to_have_count(2)


@pytest.mark.long
def test_a_page_after_the_dialog_comes_with_its_scripts(page, kept):
    page.goto(f"{ACCOUNT}sas/new/?table=kept")
    with page.expect_response("**/preview/**"):  # it would ask to sign in before the button does
        page.get_by_label("Label").fill("For the night job")
    expire(page)
    script = Held(page, "**/console/access/test.js")
    page.get_by_role("button", name="Create SAS token").click()
    sign_in(page)
    script.wait()
    expect(page.get_by_text("Copy this token now.")).to_have_count(0)
    script.release()
    expect(page.get_by_text("Copy this token now.")).to_be_visible()
    page.get_by_role("button", name="Send request").click()  # by a script that came with the page
    expect(page.locator("#sas-test")).to_contain_text("The token works")


def test_without_an_answer_the_text_stays_and_retry_sends_it(page, kept):
    name, save = open_drawer(page)
    name.fill("Offline")
    page.context.set_offline(True)
    save.click()
    trouble = page.locator(".trouble")
    expect(trouble).to_contain_text("The server cannot be reached")
    expect(page.locator("html")).to_have_attribute("data-unsent", "")
    assert save.evaluate("it => getComputedStyle(it, '::before').content") == "none"  # nothing spins
    check_axe(page, ".trouble")
    trouble.get_by_role("button", name="Close").click()
    expect(trouble).to_have_count(0)
    save.click()
    trouble.wait_for()
    name.fill("Offline, then changed")
    page.context.set_offline(False)
    expect(trouble).to_contain_text("Connected again")
    save.click()  # same as Retry, with the present fields of the form
    said(page, "Saved 1 property")
    expect(trouble).to_have_count(0)
    assert kept.get_entity("se", "0")["Name"] == "Offline, then changed"
    page.locator("[data-drawer-close]").click()
    page.context.set_offline(True)
    page.get_by_role("button", name="Run").click()  # requests that only read are repeated by themselves
    trouble.wait_for()
    page.context.set_offline(False)
    expect(trouble).to_have_count(0)


FAILURE = """<div class="toast problem" role="alert" data-toast="error">
<div><b>Something went wrong</b><p class="muted">Send this request ID to your administrator:</p>
<p><span class="key-chip"><code>751b02d76c8844d88d37e8f7ee70fe8d</code>
<button class="copy" type="button" aria-label="Copy"></button></span></p></div>
<button class="button icon-only" type="button" data-dismiss aria-label="Close"></button></div>"""


def test_a_failure_of_the_server_stays_until_retry(page, kept):
    """The connection works, so nothing but the request ID and Retry helps."""
    name, save = open_drawer(page)
    name.fill("Failing")
    headers = {"X-Tablero-Problem": "true", "Content-Type": "text/html"}
    is_failing = True

    def answer(route):
        route.fulfill(status=500, headers=headers, body=FAILURE) if is_failing else route.fallback()

    intercept(page, "**/t/kept/entity/?*", answer)
    save.click()
    trouble = page.locator(".trouble")
    expect(trouble).to_contain_text("751b02d76c8844d88d37e8f7ee70fe8d")
    check_axe(page, ".trouble")
    box = trouble.bounding_box()
    assert box["x"] + box["width"] <= page.viewport_size["width"]
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(trouble).to_contain_text("751b02d76c8844d88d37e8f7ee70fe8d")
    is_failing = False
    trouble.get_by_role("button", name="Retry").click()
    said(page, "Saved 1 property")
    expect(trouble).to_have_count(0)


@pytest.mark.long
def test_text_typed_while_a_form_is_saved_stays(page, kept):
    name, save = open_drawer(page)
    name.fill("Grace")
    saving = Held(page, "**/t/kept/entity/?*")
    save.click()
    saving.wait()
    name.press("End")
    page.keyboard.type(" Hopper")
    # it may be refused, so that leaving asks
    page.locator(f"a[href='{ACCOUNT}overview/']:visible").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Keep editing").click()
    name.press("End")
    saving.release()
    said(page, "Saved 1 property")
    expect(name).to_have_value("Grace Hopper")
    expect(name).to_be_focused()
    assert kept.get_entity("se", "0")["Name"] == "Grace"
    page.keyboard.type("!")
    save.click()
    expect(page.locator("#drawer [data-save-label]")).to_have_text("Save")
    assert kept.get_entity("se", "0")["Name"] == "Grace Hopper!"


@pytest.mark.long
def test_text_typed_while_another_view_loads_is_offered_there(page, kept):
    name, _ = open_drawer(page)
    view = Held(page, "**/t/kept/entity/?*")
    page.locator("#drawer").get_by_role("link", name="JSON").click()
    view.wait()
    name.fill("Hedy")
    view.release()
    page.locator("#drawer .draft-offer").get_by_role("button", name="Restore").click()
    expect(name).to_have_value("Hedy")


@pytest.mark.long
def test_a_refusal_where_nothing_was_typed_speaks_of_no_text(page, service):
    service.create_table("gone")
    page.goto(f"{ACCOUNT}t/gone/settings/")
    service.delete_table("gone")
    page.locator(".table-frame .star").click()
    problem = page.locator(".problem")
    expect(problem).to_contain_text("the table gone")
    expect(problem).not_to_contain_text("What you typed")


@pytest.mark.long
def test_a_table_deleted_meanwhile_takes_no_text_along(page, service):
    service.create_table("doomed").create_entity(
        {"PartitionKey": "a", "RowKey": "b"}
    )  # an empty one is not kept
    page.goto(f"{ACCOUNT}t/doomed/settings/")
    page.get_by_label("Description").fill("typed in vain")
    service.delete_table("doomed")
    page.get_by_role("button", name=SAVE).first.click()
    problem = page.locator(".problem")
    expect(problem).to_contain_text("key1 deleted the table doomed at")
    expect(problem).to_contain_text("What you typed is still on this page.")
    expect(page.get_by_label("Description")).to_have_value("typed in vain")
    page.on("dialog", lambda dialog: dialog.accept())
    problem.get_by_role("button", name="Restore doomed").click()
    page.wait_for_url("**/t/doomed/")
    expect(page.locator("#toasts")).to_contain_text("Restored doomed.")


@pytest.mark.long
def test_a_reload_offers_unsaved_changes(page, kept):
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{ACCOUNT}t/kept/entity/?pk=se&rk=1")
    page.get_by_label("Name", exact=True).fill("Unsaved")
    page.get_by_role("button", name="Add property").click()
    page.keyboard.type("Added")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("as well")
    page.reload()
    offer = page.locator(".draft-offer")
    offer.wait_for()
    check_axe(page, "main")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Ada")
    offer.get_by_role("button", name="Restore").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Unsaved")
    page.get_by_role("button", name=SAVE).click()
    said(page, "Saved 2 properties")
    assert kept.get_entity("se", "1")["Added"] == "as well"
    page.reload()
    page.locator("#entity-form").wait_for()
    expect(offer).to_have_count(0)


@pytest.mark.long
def test_a_reload_offers_unsaved_rules(page):
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{ACCOUNT}service/")
    page.get_by_role("button", name="Add rule").click()
    expect(page.locator(".chips > #id_cors-0-origins")).to_be_focused()
    page.keyboard.type("https://half.example")
    page.reload()
    page.locator(".draft-offer").get_by_role("button", name="Restore").click()
    expect(page.locator(".cors-rule .chip")).to_contain_text("https://half.example")
    expect(page.get_by_text("Unsaved changes", exact=True)).to_be_visible()
    page.get_by_role("link", name="Discard").click()
    expect(page.locator(".cors-rule")).to_have_count(0)
