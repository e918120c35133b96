"""From page to page in one document: nothing stays of a page that was left, and back is where one was."""

import pytest
from playwright.sync_api import expect

ACCOUNT = "/ui/a/devstoreaccount1/"
TABLE = ACCOUNT + "t/people/"


@pytest.fixture
def page(open_page, admin, tables):
    """A grid, in a document with a mark: it goes with the document."""
    page = open_page(TABLE, state=admin, width=1280, height=700, reduced_motion="reduce")
    page.evaluate("window.marked = true")
    return page


def is_same_document(page):
    return page.evaluate("window.marked === true")


def follow(page, address):
    page.locator(f"#sidebar a[href='{address}'], .table-frame a[href='{address}']").first.click()
    page.wait_for_url(f"**{address}")


@pytest.fixture
def measure(page):
    """Listeners of the document and the window, and what the page keeps in memory."""
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")

    def listeners(expression):
        it = client.send("Runtime.evaluate", {"expression": expression})["result"]["objectId"]
        return len(client.send("DOMDebugger.getEventListeners", {"objectId": it})["listeners"])

    def measure():
        for _ in range(3):  # what a first collection ends may have held others
            client.send("HeapProfiler.collectGarbage")
        metrics = {it["name"]: it["value"] for it in client.send("Performance.getMetrics")["metrics"]}
        kept = {name: metrics[name] for name in ("Nodes", "JSEventListeners", "JSHeapUsedSize")}
        return (listeners("document"), listeners("window")), kept

    yield measure
    client.detach()


def test_fifty_pages_leave_nothing(page, measure):
    def go_round():
        for name in ("schema/", "history/", "metrics/", "acl/", "settings/"):
            follow(page, TABLE + name)
        for name in ("activity/", "overview/", "compare/", "", "t/people/"):
            follow(page, ACCOUNT + name)
        # what a grid sets up: an editor of the filter, one of a cell, the drawer
        page.locator("#filter").click()
        page.locator(".cm-content").wait_for()
        page.locator("tr[data-key] td[data-property=Age]").first.click()
        page.keyboard.press("F2")
        page.locator("#cell-editor").wait_for()
        page.keyboard.press("Escape")
        page.locator("tr[data-key] a.open").first.click(force=True)
        page.locator("#drawer #entity-form").wait_for()

    for _ in range(2):  # caches, compiled code
        go_round()
    heard, kept = measure()
    for _ in range(3):
        go_round()
    assert is_same_document(page)
    heard_later, kept_later = measure()
    assert heard_later == heard
    assert kept_later["JSEventListeners"] < kept["JSEventListeners"] + 50, (kept, kept_later)
    assert kept_later["JSHeapUsedSize"] < 1.25 * kept["JSHeapUsedSize"], (kept, kept_later)
    # the browser may hold one page that was left, the largest of which has 10,000
    assert kept_later["Nodes"] < kept["Nodes"] + 12_000, (kept, kept_later)


def test_back_is_where_one_was(page):
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
    expect(page.get_by_label("$filter")).to_have_value("")
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


def test_ticked_rows_stay_with_their_table(page):
    page.locator("tr[data-key] [name=key]").first.check()
    expect(page.locator("[data-picked-count]")).to_contain_text("1")
    follow(page, ACCOUNT + "t/empty/")
    follow(page, TABLE)
    expect(page.locator("tr[data-key]").first).to_be_visible()
    assert page.locator("#selection[data-picked]").count() == 0
    assert is_same_document(page)


def test_going_back_asks_before_it_loses_what_was_typed(page):
    page.locator("tr[data-key] a.open").first.click(force=True)
    page.get_by_role("link", name="Open as a page").click()
    page.wait_for_url("**/entity/?*")
    page.get_by_label("Name", exact=True).last.fill("changed")
    page.evaluate("history.back()")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert "/entity/?" in page.url
    dialog.get_by_role("button", name="Leave").click()
    page.wait_for_url(lambda url: "/entity/" not in url)
    expect(page.locator("tr[data-key]").first).to_be_visible()


def test_pages_of_another_frame_are_loaded(page):
    follow(page, ACCOUNT + "overview/")
    page.evaluate("location.assign('/ui/api/docs/')")
    page.wait_for_url("**/ui/api/docs/")
    assert not is_same_document(page)
