"""The form of a SAS token: a policy locks fields, a preview follows what is typed, and a request tries the token."""

import pytest
from azure.data.tables import TableAccessPolicy
from playwright.sync_api import expect

from tests.browser.page import check_axe, confirm_identity

pytestmark = pytest.mark.long
SAS = "/ui/a/devstoreaccount1/sas/"
TABLE = "orders"


@pytest.fixture
def page(open_page, admin, service):
    """Open the form for a table with a complete policy, and delete the table in the end."""
    with service.create_table(TABLE) as table:
        table.set_table_access_policy({"partner": TableAccessPolicy(permission="r", expiry="2099-01-01")})
    page = open_page(f"{SAS}new/?table={TABLE}", state=admin, fresh=True)
    confirm_identity(page)
    yield page
    service.delete_table(TABLE)


def test_a_policy_locks_the_fields_it_sets(page):
    page.get_by_label("Policy").focus()
    page.get_by_label("Policy").select_option("partner")
    expect(page.get_by_label("Query")).to_be_disabled()
    expect(page.locator("#id_expiry")).to_be_disabled()
    expect(page.locator("#id_policy")).to_be_focused()
    check_axe(page, "main")
    page.get_by_label("Policy").select_option("")
    expect(page.get_by_label("Query")).to_be_checked()
    expect(page.locator("#id_expiry")).to_have_value("1d")


def test_typed_fields_are_previewed_and_the_token_is_tried(page):
    page.get_by_label("Addresses").fill("127.0.0.0/8")
    expect(page.locator("#sas-sentence")).to_contain_text("only from 127.0.0.0 to 127.255.255.255")
    page.get_by_label("Label").fill("partner demo")
    page.wait_for_url("**label=partner+demo**")
    expect(page.get_by_label("Addresses")).to_have_value("127.0.0.0/8")
    page.get_by_text("String to sign").click()
    expect(page.locator(".to-sign")).to_contain_text("/table/devstoreaccount1/orders↵")
    page.get_by_role("button", name="Create SAS token").click()
    expect(page.get_by_text("Copy this token now.")).to_be_visible()
    page.get_by_role("button", name="Send request").click()
    expect(page.locator("#sas-test")).to_contain_text("The token works")
    check_axe(page, "main")


def test_a_token_is_blocked_and_accepted_again(page):
    page.get_by_label("Label").fill("blocked demo")
    page.get_by_role("button", name="Create SAS token").click()
    page.get_by_role("link", name="Done").click()
    page.wait_for_url(f"**{SAS}*/")
    check_axe(page, "main")
    page.get_by_role("button", name="Block").click()
    expect(page.locator("#toasts")).to_contain_text("Blocked")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("main .badge", has_text="active")).to_be_visible()


def test_a_pending_preview_is_aborted_with_its_page(page):
    """It would put the address of the form on the page of the token; Watch sees htmx miss its target."""
    page.clock.install()
    page.get_by_label("Label").fill("nightly import")
    page.get_by_role("button", name="Create SAS token").click()
    expect(page.get_by_role("heading", name="nightly import")).to_be_visible()
    expect(page.locator(".heading")).to_contain_text("SAS token expires in")
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    page.clock.fast_forward(1000)
    page.evaluate("fetch('/ui/healthz')")
    assert not [url for url in sent if "preview" in url]
