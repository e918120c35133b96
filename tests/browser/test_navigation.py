"""From page to page in one document: nothing stays of a page that was left, and back is where one was."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe, intercept

ACCOUNT = "/ui/a/devstoreaccount1/"
TABLE = ACCOUNT + "t/people/"


@pytest.fixture
def page(open_page, admin, tables):
    """Open a grid in a document with a mark, which ends with the document."""
    page = open_page(TABLE, state=admin, width=1280, height=700, reduced_motion="reduce")
    page.evaluate("window.marked = true")
    return page


def is_same_document(page):
    return page.evaluate("window.marked === true")


def follow(page, address):
    page.locator(f"a[href='{address}']:visible").first.click()
    page.wait_for_url(f"**{address}")


@pytest.fixture
def measure(page):
    """Count listeners of the document and the window, and left pages that are still in memory."""
    client = page.context.new_cdp_session(page)

    def listeners(expression):
        it = client.send("Runtime.evaluate", {"expression": expression})["result"]["objectId"]
        return len(client.send("DOMDebugger.getEventListeners", {"objectId": it})["listeners"])

    def measure():
        for _ in range(3):  # objects freed by the first collection may have held others
            client.send("HeapProfiler.collectGarbage")
        kept = page.evaluate("left.filter(it => it.deref() && !it.deref().isConnected).length")
        return (listeners("document"), listeners("window")), kept

    yield measure
    client.detach()


# the controls of the bar at the top that lie over their neighbours
BAR = """
() => {
    const all = [...document.querySelectorAll(".top :is(a, button)")];
    const seen = all.filter(it => it.checkVisibility() && it.offsetWidth);
    const boxes = seen.map(it => it.getBoundingClientRect());
    const covered = seen.filter((it, at) => at && boxes[at].left < boxes[at - 1].right - 1);
    return covered.map(it => it.outerHTML.slice(0, 100));
}
"""


@pytest.mark.parametrize("width", [320, 390])
def test_the_bar_of_a_table_on_a_touch_screen(open_page, admin, tables, width):
    page = open_page(TABLE, state=admin, width=width, height=800, has_touch=True, is_mobile=True)
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    assert page.evaluate(BAR) == []
    assert page.locator(".place > b").bounding_box()["width"] > 45


@pytest.mark.long
def test_the_arrow_keys_go_through_what_a_search_of_the_help_finds(page):
    page.goto("/ui/help/")
    field = page.get_by_role("searchbox", name="Search the documentation")
    field.fill("inverted ticks")
    results = page.locator("[data-result]")
    expect(results.first).to_have_text("Log tail")
    expect(page.locator(".help-contents mark").first).to_have_text("inverted")
    check_axe(page)
    field.press("ArrowDown")
    expect(results.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/help/design/#log-tail")


@pytest.mark.long
def test_leaving_a_page_leaks_nothing(page, measure):
    def go_round():
        for address in (TABLE + "schema/", TABLE + "metrics/", ACCOUNT + "activity/", TABLE):
            page.evaluate("left.push(new WeakRef(document.getElementById('main')))")
            follow(page, address)
        # parts of a grid: an editor of the filter, one of a cell, the drawer
        page.locator("#filter").click()
        page.locator(".cm-content").wait_for()
        page.locator("tr[data-key] td[data-property=Age]").first.click()
        page.keyboard.press("F2")
        page.locator("#cell-editor").wait_for()
        page.keyboard.press("Escape")
        page.locator("tr[data-key] a.open").first.click(force=True)
        page.locator("#drawer #entity-form").wait_for()

    page.evaluate("window.left = []")
    go_round()
    heard, _ = measure()
    go_round()
    heard_later, kept = measure()
    assert is_same_document(page)
    assert heard_later == heard
    assert kept <= 1  # the browser may hold one


@pytest.fixture
def asked(page):
    """Return the addresses that the page asks for, as it does so."""
    addresses = []
    page.on("request", lambda it: addresses.append(urlsplit(it.url).path))
    return addresses


def press(page, address):
    """Press a link without a limit of time, which a busy machine could exceed."""
    page.evaluate("performance.now = () => 0; window.setTimeout = () => 0")
    page.locator(f"a[href='{address}']:visible").first.hover()
    page.mouse.down()


def test_a_page_is_asked_for_when_its_link_is_pressed(page, asked):
    schema = TABLE + "schema/"
    with page.expect_response(f"**{schema}"):
        press(page, schema)
    assert page.url.endswith(TABLE)
    page.mouse.up()
    expect(page.locator("#schema")).to_be_visible()
    assert page.url.endswith(schema)
    assert asked.count(schema) == 1
    assert is_same_document(page)


def test_a_press_that_was_no_click_is_forgotten(page, asked):
    schema = TABLE + "schema/"
    with page.expect_response(f"**{schema}"):
        press(page, schema)
    page.mouse.move(700, 600)
    page.mouse.up()
    assert page.url.endswith(TABLE)
    with page.expect_response(f"**{schema}"):
        follow(page, schema)
    expect(page.locator("#schema")).to_be_visible()
    assert asked.count(schema) == 2
    assert is_same_document(page)


def test_a_pressed_page_is_not_asked_for_before_a_change_has_its_answer(page, asked):
    schema = TABLE + "schema/"
    starring = Held(page, "**/star/")
    page.locator(".table-frame .star").click()
    starring.wait()
    press(page, schema)
    page.wait_for_timeout(100)
    assert schema not in asked
    starring.release()
    page.mouse.up()
    expect(page.locator("#schema")).to_be_visible()
    assert asked.count(schema) == 1


IS_PREFETCHED = "performance.getEntriesByType('navigation')[0].deliveryType === 'navigational-prefetch'"


def test_a_document_is_asked_for_when_its_link_is_pressed(page):
    page.goto("/ui/")
    statuses = []
    client = page.context.new_cdp_session(page)
    client.on("Preload.prefetchStatusUpdated", lambda it: statuses.append(it["status"]))
    client.send("Preload.enable")
    press(page, ACCOUNT)
    while "Ready" not in statuses:
        page.wait_for_timeout(10)
    assert page.url.endswith("/ui/")
    page.mouse.up()
    page.wait_for_url(f"**{ACCOUNT}")
    assert page.evaluate(IS_PREFETCHED)


def test_a_document_whose_link_was_pressed_before_is_asked_for_again(page):
    page.goto("/ui/")
    page.locator(f"#main a[href='{ACCOUNT}']").first.hover()
    page.mouse.down()
    page.mouse.move(5, 690)
    page.mouse.up()
    expect(page.locator("[data-pressed]")).to_have_count(0)
    page.locator(f"#main a[href='{ACCOUNT}']").first.evaluate("it => it.click()")
    page.wait_for_url(f"**{ACCOUNT}")
    assert not page.evaluate(IS_PREFETCHED)


def test_back_restores_the_position(page):
    region = page.locator(".grid-region")
    rows = page.locator("tr[data-key]")
    page.locator("#filter").click()
    page.locator(".cm-content").fill("Age ge 10")
    page.keyboard.press("Enter")
    page.wait_for_url("**f=Age+ge+10*")
    rows.nth(30).locator("td[data-property=Age]").click()
    page.keyboard.press("ArrowDown")
    key = rows.nth(31).get_attribute("data-key")
    top = region.evaluate("it => it.scrollTop")
    assert top > 0
    # by a key, which leaves the focus in the cell
    page.keyboard.press("Escape")
    rows.nth(31).locator("td[data-property=Age]").focus()
    page.evaluate(f"location.assign('{TABLE}schema/')")
    expect(page.locator("#schema")).to_be_visible()
    page.evaluate("window.scrollTo(0, 40)")

    page.go_back()
    expect(rows.nth(31)).to_be_visible()
    expect(page.locator("td:focus")).to_have_text("41")
    assert page.locator("tr:has(td:focus)").get_attribute("data-key") == key
    assert region.evaluate("it => it.scrollTop") == top
    expect(page.get_by_label("$filter")).to_have_value("Age ge 10")
    page.keyboard.press("ArrowDown")  # and the keys go on from there
    expect(page.locator("td:focus")).to_have_text("42")

    page.go_back()
    expect(page.locator("input#filter")).to_have_value("")
    expect(rows.first.locator("td[data-property=Age]")).to_have_text("0")
    page.go_forward()
    expect(page.locator("td:focus")).to_have_text("42")
    rows.nth(2).locator("a.open").click(force=True)
    page.locator("#drawer #entity-form").wait_for()
    page.go_forward()
    expect(page.locator("#schema")).to_be_visible()
    page.go_back()
    expect(page.locator("#drawer #entity-form")).to_be_visible()
    assert "open=" in page.url
    assert is_same_document(page)


@pytest.mark.long
def test_ticked_rows_stay_with_their_table(page):
    page.locator("tr[data-key] [name=key]").first.check()
    expect(page.locator("[data-picked-count]")).to_contain_text("1")
    follow(page, ACCOUNT + "t/empty/")
    follow(page, TABLE)
    expect(page.locator("tr[data-key]").first).to_be_visible()
    assert page.locator("#selection[data-picked]").count() == 0
    assert is_same_document(page)


@pytest.mark.long
def test_going_back_confirms_before_discarding_text(page):
    page.locator("tr[data-key] a.open").first.click(force=True)
    page.get_by_role("link", name="Open as a page").click()
    page.wait_for_url("**/entity/?*")
    page.get_by_label("Name", exact=True).last.fill("changed")
    dialog = page.get_by_role("dialog")
    page.evaluate("history.back()")
    dialog.get_by_role("button", name="Keep editing").click()
    page.evaluate("history.back()")
    expect(dialog).to_be_visible()
    assert "/entity/?" in page.url
    dialog.get_by_role("button", name="Leave").click()
    page.wait_for_url(lambda url: "/entity/" not in url)
    expect(page.locator("tr[data-key]").first).to_be_visible()


@pytest.mark.long
def test_a_page_is_announced_and_its_styles_are_those_of_a_load(page):
    follow(page, ACCOUNT + "overview/")
    page.go_back()
    follow(page, TABLE + "schema/")
    expect(page.locator("#main")).to_be_focused()
    expect(page.locator("#page-title")).to_have_text(page.title())
    assert page.title().startswith("Schema")
    expect(page.locator(".table-frame [aria-current=page]")).to_have_text("Schema")
    assert is_same_document(page)
    check_axe(page)
    styles = (
        """() => [...document.styleSheets].filter(it => !it.disabled && it.href).map(it => it.href).sort()"""
    )
    applied = page.evaluate(styles)
    page.reload()
    assert page.evaluate(styles) == applied


@pytest.mark.long
def test_streams_end_with_their_page(page):
    follow(page, TABLE + "schema/")
    page.evaluate("""() => {
        window.streams = [];
        const Real = EventSource;
        window.EventSource = class extends Real {
            constructor(address) { super(address); streams.push(this); }
        };
    }""")
    follow(page, TABLE)
    page.wait_for_selector("tr[data-key]")
    assert page.evaluate("streams.filter(it => it.readyState !== EventSource.CLOSED).length") == 1
    intercept(page, "**/entity/?*", lambda _: None)  # the entity in the drawer never comes
    with page.expect_request("**/entity/?*"):
        page.locator("tr[data-key] a.open").first.click(force=True)
    follow(page, ACCOUNT + "overview/")
    assert page.evaluate("streams.every(it => it.readyState === EventSource.CLOSED)")


@pytest.mark.long
def test_choices_in_a_form_survive_the_back_button(page):
    page.get_by_role("button", name="Table actions").click()
    page.locator("a[data-export]").click()
    page.wait_for_url("**/export/?*")
    choice = page.locator("form.export input[type=radio]").last
    choice.check()
    follow(page, ACCOUNT + "overview/")
    page.go_back()
    expect(choice).to_be_checked()
    assert is_same_document(page)


@pytest.mark.long
def test_the_last_of_two_clicks_counts(page):
    def click(name):  # without a wait for the page that it leads to
        page.locator(f"a[href='{TABLE}{name}/']:visible").first.dispatch_event("click")

    intercept(page, "**/schema/", lambda _: None)  # never answered
    with page.expect_request("**/schema/"):
        click("schema")
    with page.expect_event("requestfailed", lambda it: it.url.endswith("/schema/")):
        click("history")
    page.wait_for_url(f"**{TABLE}history/")
    expect(page.locator(".table-frame [aria-current=page]")).to_have_text("History")
    assert is_same_document(page)


@pytest.mark.long
def test_a_new_version_is_loaded(page):
    def deploy(route):
        answer = route.fetch()
        route.fulfill(
            response=answer, body=re.sub(r"/ui/static/\w+/", "/ui/static/000000000000/", answer.text())
        )

    intercept(page, f"**{ACCOUNT}overview/", deploy)
    follow(page, ACCOUNT + "overview/")
    page.wait_for_function("window.marked === undefined")
    expect(page.get_by_role("heading", level=1)).to_be_visible()


@pytest.mark.long
def test_pages_of_another_frame_are_loaded(page):
    follow(page, ACCOUNT + "overview/")
    page.evaluate("location.assign('/ui/api/docs/')")
    page.wait_for_url("**/ui/api/docs/")
    assert not is_same_document(page)
