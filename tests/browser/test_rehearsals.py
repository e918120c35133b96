"""Rehearsals in a real browser: from a new account to a first finding, the band above all pages, and own sets."""

import re

import pytest
from azure.data.tables import TableServiceClient
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_on_a_phone

pytestmark = pytest.mark.long
PAGE = "/ui/a/rehearsed/rehearsals/"


def take_first_page(table):
    """Take the first page for the whole result, as a broken program does; then go on."""
    list(next(table.list_entities(results_per_page=5).by_page()))
    table.get_entity("se", "1")


def test_from_nothing_to_a_first_finding(open_page, admin):
    page = open_page("/ui/a/new/", state=admin)
    page.get_by_label("Name", exact=True).fill("rehearsed")
    page.get_by_role("button", name="Create account").click()
    page.wait_for_url("**/ui/a/rehearsed/created/")
    [connection] = re.findall(r"DefaultEndpointsProtocol=[^\s\"<&]+", page.content().replace("&amp;", "&"))[
        :1
    ]
    page.get_by_role("link", name="Traffic").click()
    page.get_by_role("link", name="Rehearse", exact=True).click()
    page.get_by_role("button", name="Allow rehearsals").click()
    page.get_by_role("radio", name="short-pages").check()
    page.get_by_label("Seed").fill("7")
    check(page)
    page.get_by_role("button", name="Start rehearsal").click()
    expect(page.get_by_role("heading", name="Waiting for the first request")).to_be_visible()
    check(page)

    with TableServiceClient.from_connection_string(connection) as service:
        table = service.create_table("people")
        table.submit_transaction(
            [("create", {"PartitionKey": "se", "RowKey": str(number)}) for number in range(10)]
        )
        for _ in range(6):
            take_first_page(table)
    # without a reload
    expect(page.get_by_role("heading", name="Ignored a continuation token").first).to_be_visible()
    check(page)
    check_on_a_phone(page)
    page.get_by_role("link", name="Requests that show it").first.click()
    expect(page.get_by_text("· continues").first).to_be_visible()
    check_axe(page, "main")
    check_on_a_phone(page)

    # the band leads back, and stops it
    page.goto("/ui/a/rehearsed/t/people/")
    band = page.locator(".banner.state")
    expect(band).to_contain_text("Failures are rehearsed in this account: short-pages ends in")
    check_axe(page, "main")
    check_on_a_phone(page)
    page.set_viewport_size({"width": 390, "height": 900})
    expect(band.get_by_role("button", name="Stop")).to_be_in_viewport()
    band.get_by_role("button", name="Stop").click()
    page.wait_for_url(re.compile(rf"{PAGE}\d+/$"))
    expect(page.get_by_role("heading", name=re.compile("Clients did . thing"))).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    check_axe(page, "main")
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_role("radio", name="short-pages")).to_be_checked()
    expect(page.get_by_label("Seed")).to_have_value("7")


def test_a_set_of_rules_of_ones_own(open_page, admin, console):
    console.manage("account", "add", "ownrules")
    page = open_page("/ui/a/ownrules/rehearsals/new-set/?from=throttled", state=admin, expect=422)
    page.get_by_label("Name").fill("rare")
    rules = page.get_by_label("Rules")
    expect(rules).to_have_value(re.compile('"share": 0.2'))
    rules.fill('[{"effect": "throttle", "when": {"share": 2}}]')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-error-summary]")).to_contain_text("must be a number from 0 to 1")
    check(page)
    rules.fill('[{"effect": "throttle", "when": {"share": 0.5}}]')
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".rehearsal-sets li").filter(has_text="rare")).to_be_visible()
    page.get_by_role("link", name="Change rare").click()
    page.get_by_role("button", name="Delete rare").click()
    expect(page.locator(".rehearsal-sets li").filter(has_text="rare")).to_have_count(0)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".rehearsal-sets li").filter(has_text="rare")).to_be_visible()
