"""The log of requests: found by a pasted message, opened beside its list by mouse and keys, narrowed by dragging."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, TableSasPermissions, generate_table_sas
from playwright.sync_api import expect

from tests.browser.page import check, check_reflow

pytestmark = pytest.mark.long
TABLE = "whyorders"
LOG = "/ui/a/devstoreaccount1/requests/"
LISTED = f"{LOG}?span=hour&table={TABLE}&kind=refused"


@pytest.fixture(scope="module")
def refusal(console, service):
    """Return the message of an SDK for the last of three requests with an expired token."""
    service.create_table(TABLE).close()
    now = datetime.now(UTC)
    token = generate_table_sas(
        AzureNamedKeyCredential(console.account, console.key), TABLE, permission=TableSasPermissions(read=True),
        start=now - timedelta(days=1), expiry=now - timedelta(hours=3),
    )  # fmt: skip
    with TableClient(console.endpoint, TABLE, credential=AzureSasCredential(token)) as client:
        for number in range(3):
            with pytest.raises(HttpResponseError) as caught:
                client.get_entity("p", str(number))
    return str(caught.value)


@pytest.fixture
def open_logged(open_page, admin, refusal):
    """Return `open_logged(path)`, which opens a page once the refused requests are in the log, within two seconds."""

    def open_it(path, **options):
        page = open_page("/ui/", state=admin, **options)
        while "data-request" not in page.request.get(LOG, params={"q": refusal}).text():
            pass
        page.goto(path)
        return page

    return open_it


def test_a_pasted_message_leads_to_its_cause(open_logged, refusal):
    page = open_logged("/ui/", permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", refusal)
    page.keyboard.press("Control+V")  # with the focus nowhere, as on any page of the console
    hit = page.locator("#palette [role=option]").first
    expect(hit).to_contain_text(re.compile(r"^\s*403"))
    hit.click()
    expect(page.locator("#request")).to_contain_text("expired 3 hours before this request")
    check(page, within="#request")


def test_keys_step_through_the_requests_beside_the_list(open_logged):
    page = open_logged(LISTED)
    rows = page.locator("tr[data-request]")
    first, second, third = (rows.nth(number).get_attribute("data-request") for number in range(3))
    drawer = page.locator("#request-drawer")

    def is_open(request):
        expect(drawer.locator(f"[data-request='{request}']")).to_be_visible()

    rows.nth(1).locator("td").first.click()
    is_open(second)
    expect(page).to_have_url(re.compile(f"open={second}$"))
    page.keyboard.press("Alt+ArrowDown")
    is_open(third)
    page.keyboard.press("k")
    is_open(second)
    check(page, within="#request-drawer")
    # by name too
    page.keyboard.press("Control+k")
    page.keyboard.type("previous request")
    expect(page.get_by_role("option", name="Previous request")).to_be_visible()
    page.keyboard.press("Enter")
    is_open(first)
    page.keyboard.press("j")
    is_open(second)
    page.reload()
    is_open(second)
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.locator(f"tr[data-request='{second}']").get_by_role("link").first).to_be_focused()
    expect(page).not_to_have_url(re.compile("open="))


def test_a_bar_of_the_histogram_narrows_the_list(open_logged):
    page = open_logged(LISTED)
    bar = page.locator("[data-histogram] g:has(.refused)").last.bounding_box()
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.wait_for_url(re.compile(r"since=.+&until=.+"))
    expect(page.locator("tr[data-request]")).not_to_have_count(0)
    expect(page.get_by_role("link", name="Show all times")).to_be_visible()


def test_a_request_opens_on_a_phone(open_logged):
    page = open_logged(LISTED, width=320)
    check_reflow(page)
    page.locator("tr[data-request]").first.click()
    expect(page.locator("#request-drawer")).to_be_visible()
    check_reflow(page)
