"""The service properties: the lines R1 to R3 of the console's acceptance list."""

import http.client
from urllib.parse import urlsplit

import pytest
from azure.data.tables import TableServiceClient
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_reflow

PAGE = "/ui/a/devstoreaccount1/service/"
ORIGINS = ("https://app.example.org", "http://localhost:3000", "https://other.example")
METHODS = ("GET", "DELETE")
HEADERS = ("", "x-ms-date, Content-Type", "x-other")


@pytest.fixture
def open_service(open_page, admin, tables, console):
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        service.set_service_properties(cors=[])

        def open_it(path="", **options):
            return open_page(PAGE + path, state=admin, **options)

        yield open_it
        service.set_service_properties(cors=[])


def ask(console, origin, method, headers):
    """The status of a real preflight request."""
    connection = http.client.HTTPConnection(urlsplit(console.url).netloc, timeout=10)
    sent = {"Origin": origin, "Access-Control-Request-Method": method}
    if headers:
        sent["Access-Control-Request-Headers"] = headers
    try:
        connection.request("OPTIONS", "/devstoreaccount1/people", headers=sent)
        return connection.getresponse().status
    finally:
        connection.close()


def save(page):
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_text("Saved the service properties.").last).to_be_visible()


def test_r1_verdict_is_that_of_a_real_request(open_service, console):
    page = open_service()
    page.get_by_role("button", name="single origin").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("button", name="localhost for development").click()
    expect(page.get_by_role("heading", name="Rule 2")).to_be_visible()
    save(page)
    page.get_by_role("button", name="Close").last.click()
    seen = set()
    for origin in ORIGINS:
        for method in METHODS:
            for headers in HEADERS:
                page.get_by_label("Origin", exact=True).fill(origin)
                page.get_by_label("Method", exact=True).select_option(method)
                page.get_by_label("Headers (optional)").fill(headers)
                with page.expect_response("**/service/save/"):
                    page.get_by_role("button", name="Test").click()
                status = ask(console, origin, method, headers)
                verdict = page.locator("#verdict")
                expect(verdict).to_contain_text("200 OK" if status == 200 else "CorsPreflightFailure")
                seen.add(status)
    assert seen == {200, 403}
    page.goto(f"{PAGE}?origin=https://other.example&method=GET")
    expect(page.locator("#verdict")).to_contain_text("Rule 2 does not match the origin.")
    check_axe(page)


def test_r2_limits(open_service):
    page = open_service()
    for number in range(1, 6):
        page.get_by_role("button", name="Add rule").click()
        expect(page.get_by_role("heading", name=f"Rule {number}")).to_be_visible()
        expect(page.get_by_label("Allowed origins").nth(number - 1)).to_be_focused()
        page.keyboard.type("https://a.example ")
        if number == 2:
            check(page)
    expect(page.get_by_role("button", name="Add rule")).to_have_count(0)
    expect(page.get_by_text("You have reached the limit of 5 rules.")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_role("alert")).to_contain_text("Fix 5 errors")
    expect(page.get_by_text("InvalidXmlNodeValue").first).to_be_visible()
    check_axe(page)
    page.get_by_role("button", name="Remove rule 5").click()
    expect(page.get_by_role("heading", name="Rule 5")).to_have_count(0)
    for number in range(11):
        page.get_by_label("Allowed origins").first.fill(f"https://{number}{'x' * 200}.example,")
    expect(page.locator("#cors-meter .over")).to_contain_text("of 2,048 bytes")
    page.set_viewport_size({"width": 320, "height": 700})
    check_reflow(page)


def test_r3_xml_and_form_are_one(open_service):
    page = open_service()
    page.get_by_role("button", name="single origin").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("button", name="XML").click()
    page.wait_for_url("**/?view=xml")
    xml = page.locator("#id_xml").input_value()
    assert "<AllowedOrigins>https://app.example.org</AllowedOrigins>" in xml
    page.locator("#id_xml").fill(xml.replace("<AllowedOrigins>https://app", "<AllowedOrigins>https://new"))
    page.get_by_role("button", name="Form").click()
    expect(page.get_by_role("button", name="Remove https://new.example.org")).to_be_visible()
    page.get_by_role("button", name="XML").click()
    page.locator("#id_xml").fill("<StorageServiceProperties>\n<Cors>")
    page.get_by_role("button", name="Form").click()
    expect(page.get_by_text("InvalidXmlDocument")).to_be_visible()
    expect(page.get_by_text("line 2, column 7")).to_be_visible()
    check(page)
    page.locator("#id_xml").fill(xml)
    save(page)
    page.goto(PAGE)
    expect(page.get_by_role("button", name="Remove https://app.example.org")).to_be_visible()


def test_order_by_keyboard_and_undo(open_service):
    page = open_service()
    page.get_by_role("button", name="single origin").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("button", name="localhost for development").click()
    page.get_by_role("button", name="Move rule 2 up").press("Enter")
    expect(page.get_by_role("button", name="Move rule 1 up")).to_be_focused()
    expect(page.locator(".cors-rule").first).to_contain_text("http://localhost:3000")
    save(page)
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**{PAGE}")
    expect(page.locator(".cors-rule")).to_have_count(0)


def test_leaving_asks_when_something_is_not_saved(open_service):
    page = open_service()
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    page.get_by_role("link", name="Tables").click()
    expect(page.get_by_role("dialog", name="Leave without saving?")).to_be_visible()
    check_axe(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Discard").click()
    expect(page.get_by_role("heading", name="Rule 1")).to_have_count(0)
    page.get_by_role("link", name="Tables").click()
    page.wait_for_url("**/a/devstoreaccount1/")


def test_two_editors(open_service):
    mine, theirs = open_service(), open_service()
    for page, recipe in ((mine, "single origin"), (theirs, "localhost for development")):
        page.get_by_role("button", name=recipe).click()
        expect(page.get_by_role("heading", name="Rule 1")).to_be_visible()
    save(theirs)
    mine.get_by_role("button", name="Save", exact=True).last.click()
    expect(mine.get_by_role("alert")).to_contain_text("ada@example.org")
    expect(mine.locator(".lines .different", has_text="localhost")).to_be_visible()
    expect(mine.locator(".lines .different", has_text="app.example.org")).to_be_visible()
    check_axe(mine)
    mine.get_by_role("button", name="Overwrite with mine").click()
    expect(mine.get_by_text("Saved the service properties.").last).to_be_visible()
    theirs.reload()
    expect(theirs.get_by_role("button", name="Remove https://app.example.org")).to_be_visible()


def test_without_javascript(open_service):
    page = open_service(java_script_enabled=False)
    page.get_by_role("button", name="single origin").click()
    page.get_by_label("Allowed origins").fill("https://plain.example, *")
    page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.get_by_label("Allowed origins")).to_have_value("https://plain.example, *")
    page.get_by_label("Origin", exact=True).fill("https://any.example")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#verdict")).to_contain_text("Rule 1 allows the request.")
