"""From the first run to the last page of a table, as somebody goes who has just started a server."""

import re
from contextlib import ExitStack

import pytest
from azure.data.tables import TableServiceClient
from playwright.sync_api import expect

from tests.browser.page import Watch, check, patient
from tests.live_server import start_server
from tests.seeds import seeded

ACCOUNT = "/ui/a/devstoreaccount1/"
PASSWORD = "a password of many words"


@pytest.fixture
def live(scratch):
    """A new server."""
    with start_server(seeded(scratch / "journey")) as live:
        yield live


@pytest.fixture
def open_browser(chromium, live):
    """`open_browser(java_script_enabled=False)`: a page of a browser of its own."""
    watches = []
    with ExitStack() as stack:

        def open_it(**options):
            made = chromium.new_context(base_url=live.url, locale="en-US", **options)
            page = stack.enter_context(patient(made)).new_page()
            watches.append(Watch(page, 200))
            return page

        yield open_it
    assert [fault for watch in watches for fault in watch.faults] == []


def test_journey(live, open_browser):
    """Without JavaScript: what scripts do on these pages, the tests of each page prove."""
    address = next(word for line in live.output for word in line.split() if "/ui/setup/?token=" in word)
    with_scripts = open_browser()
    with_scripts.goto(address)
    check(with_scripts, within="body")
    page = open_browser(java_script_enabled=False)
    set_up(page, address)
    make_tables(live)
    find_a_table(page)
    read_entities(page)
    query(page)
    choose(page)
    leave_and_return(page)


def set_up(page, address):
    page.goto("/")
    expect(page).to_have_url(re.compile(re.escape("/ui/login/?next=/ui/") + "$"))
    expect(page.get_by_text("no users yet")).to_be_visible()
    page.goto(address)
    page.get_by_label("User name").fill("ada@example.org")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Confirm password").fill(PASSWORD)
    page.get_by_role("button", name="Create admin and sign in").click()
    page.wait_for_url("**/ui/")
    assert page.locator(".starts .card").count() == 3  # H2
    assert page.request.get(address).status == 404
    page.get_by_role("link", name="devstoreaccount1").first.click()
    assert "create_table" in page.locator(".snippet").inner_text()


def make_tables(live):
    with TableServiceClient.from_connection_string(live.connection_string) as service:
        for name in ("audit", "empty", "people"):
            service.create_table(name)
        people = service.get_table_client("people")
        for start in range(0, 120, 100):
            people.submit_transaction([("create", person(n)) for n in range(start, min(start + 100, 120))])
        people.close()


def person(number):
    return {"PartitionKey": "se", "RowKey": f"r{number:03}", "Age": number, "Name": "" if number else "Ada"}


def find_a_table(page):
    page.goto(ACCOUNT)
    rows = page.locator("#tables tbody tr:visible")
    expect(rows).to_have_count(3)
    page.get_by_label("Filter tables by name").fill("PEO")
    page.get_by_label("Filter tables by name").press("Enter")
    page.wait_for_url("**/?q=PEO*")
    expect(rows).to_have_count(1)
    page.goto(ACCOUNT + "?q=PEO&sizes=")  # which scripts would fetch later
    assert re.search(r"people\s+120", rows.inner_text())
    rows.get_by_role("link", name="people", exact=True).click()
    page.wait_for_url("**/t/people/")
    page.go_back()
    expect(page.get_by_label("Filter tables by name")).to_have_value("PEO")
    page.go_forward()


def read_entities(page):
    rows = page.locator(".grid tbody tr")
    expect(rows).to_have_count(50)
    assert [text.strip() for text in rows.first.locator("td").all_inner_texts()][1:5] == [
        "se",
        "r000",
        "0",
        "Ada",
    ]
    assert "1 to 50 of 120" in page.locator(".pager").inner_text()
    for link, shown in [
        ("Next", "51 to 100"), ("Next", "101 to 120"), ("Previous", "51 to 100"), ("First", "1 to 50"),
    ]:  # fmt: skip
        page.get_by_role("link", name=link).click()
        page.get_by_text(shown, exact=True).wait_for()


def query(page):
    rows = page.locator(".grid tbody tr")
    for text, count in (("Age ge 100 and Age lt 103", 3), ("Age eq -1", 0)):
        page.get_by_label("$filter").fill(text)
        page.get_by_role("button", name="Run").click()
        if count:
            page.wait_for_url("**Age**103**")
            expect(rows).to_have_count(count)
    page.get_by_text("No entities match").wait_for()


def choose(page):
    page.goto("/ui/me/")
    page.get_by_label("Dark").check()
    page.get_by_label("Language").select_option("tr")
    page.locator("form[action='/ui/me/'] button").click()
    expect(page.locator("html")).to_have_attribute("lang", "tr")


def leave_and_return(page):
    page.goto("/ui/logout/")
    page.locator("main form button").click()
    page.wait_for_url("**/ui/login/")
    page.goto(ACCOUNT + "t/people/?f=Age+eq+5")
    expect(page).to_have_url(re.compile(re.escape("/ui/login/?next=")))
    page.locator("[name=login]").fill("ADA@example.org")
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("main form button.primary").click()
    page.wait_for_url("**/t/people/?f=Age+eq+5")
    expect(page.locator(".grid tbody tr")).to_have_count(1)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_pinned_columns_stay(open_page, admin, tables):
    page = open_page(ACCOUNT + "t/people/", state=admin, width=900)
    page.evaluate("document.querySelector('.grid-region').scrollLeft = 200")
    first, second = page.locator(".grid thead th.pinned").all()
    left, right = first.bounding_box(), second.bounding_box()
    assert right["x"] >= left["x"] + left["width"] - 1
