"""A shared access signature from its making to its end, as somebody at a browser goes through it."""

from urllib.parse import parse_qsl

import pytest
from azure.data.tables import TableAccessPolicy
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_reflow, confirm_identity

SAS = "/ui/a/devstoreaccount1/sas/"
TABLE = "orders"


@pytest.fixture
def orders(service):
    """A table with a policy that says everything, gone in the end."""
    with service.create_table(TABLE) as table:
        table.set_table_access_policy({"partner": TableAccessPolicy(permission="r", expiry="2099-01-01")})
        for partition in "ABC":
            table.create_entity({"PartitionKey": partition, "RowKey": "1"})
    yield
    service.delete_table(TABLE)


def test_the_life_of_a_signature(open_page, admin, orders):
    # the ticked rows become a range
    page = open_page(f"/ui/a/devstoreaccount1/t/{TABLE}/", state=admin)
    confirm_identity(page)
    for row in (2, 3):
        page.locator(f".grid tr[aria-rowindex='{row}'] input").check()
    page.locator("#selection").get_by_role("button", name="Create SAS token").click()
    page.wait_for_url("**/sas/new/**")
    expect(page.get_by_text("includes every row in between")).to_be_visible()
    assert [page.locator(f"#id_{name}").input_value() for name in ("spk", "srk", "epk", "erk")] == [
        "A",
        "1",
        "B",
        "1",
    ]

    # the policy locks what it says; without it, it can be chosen again
    page.get_by_label("Policy").focus()
    page.get_by_label("Policy").select_option("partner")
    expect(page.get_by_label("Query")).to_be_disabled()
    expect(page.locator("#id_expiry")).to_be_disabled()
    expect(page.locator("#id_policy")).to_be_focused()
    check_axe(page, "main")
    page.get_by_label("Policy").select_option("")
    expect(page.get_by_label("Query")).to_be_checked()
    expect(page.locator("#id_expiry")).to_have_value("1d")

    # what is typed is said in words beside it, and stands in the address
    page.get_by_label("Addresses").fill("127.0.0.0/8")
    expect(page.locator("#sas-sentence")).to_contain_text("only from 127.0.0.0 to 127.255.255.255")
    page.get_by_label("Label").fill("partner demo")
    page.wait_for_url("**label=partner+demo**")
    expect(page.get_by_label("Addresses")).to_have_value("127.0.0.0/8")
    page.get_by_text("String to sign").click()
    expect(page.locator(".to-sign")).to_contain_text("/table/devstoreaccount1/orders↵")
    check(page)
    page.get_by_role("button", name="Create SAS token").click()

    # shown once
    expect(page.get_by_text("Copy this token now.")).to_be_visible()
    token = page.locator("#token-text").inner_text()
    check_axe(page, "main")
    page.get_by_role("button", name="Send request").click()
    expect(page.locator("#sas-test")).to_contain_text("The token works")
    check_axe(page, "main")
    page.get_by_role("link", name="Done").click()
    page.wait_for_url(f"**{SAS}*/")
    assert dict(parse_qsl(token))["sig"] not in page.content()

    # blocked, and not any more
    expect(page.get_by_text("Requests with this token are accepted", exact=False)).to_be_visible()
    check(page)
    page.set_viewport_size({"width": 320, "height": 800})
    check_reflow(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name="Block").click()
    expect(page.locator("#toasts")).to_contain_text("Blocked")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("main .badge", has_text="active")).to_be_visible()

    # in the registry
    page.goto(SAS)
    page.get_by_role("searchbox", name="Filter by label").fill("PARTNER")
    page.wait_for_url("**q=PARTNER**")
    row = page.locator(".tokens tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("partner demo")
    expect(row).to_contain_text("ada@example.org")
    check(page)
    page.set_viewport_size({"width": 320, "height": 800})
    check_reflow(page)


def test_a_preview_on_its_way_is_given_up_with_its_page(open_page, admin, orders):
    """It would put the address of the form on the page of the token; Watch sees htmx miss its target."""
    page = open_page(f"{SAS}new/?table={TABLE}", state=admin, fresh=True)
    confirm_identity(page)
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
