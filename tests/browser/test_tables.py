"""The list of tables: filtered while one types, ticked, deleted, with sizes that come later."""

import pytest
from playwright.sync_api import expect

from tests.browser.page import Held, check, check_axe, check_reflow

ACCOUNT = "/ui/a/devstoreaccount1/"


@pytest.fixture
def open_list(open_page, admin, tables):
    def open_it(path="", **options):
        return open_page(ACCOUNT + path, state=admin, **options)

    return open_it


@pytest.fixture
def make(service):
    """Return `make("a", "b")`, which makes tables with entities; they are deleted after the test."""
    made = []

    def make(*names):
        for name in names:
            made.append(name)
            table = service.create_table_if_not_exists(name)
            rows = [{"PartitionKey": "p", "RowKey": f"{number:03}"} for number in range(3)]
            table.submit_transaction([("upsert", row) for row in rows])
            table.close()

    yield make
    for name in made:
        service.delete_table(name)


def names(page):
    return page.locator("#tables tbody th a.mono").all_inner_texts()


def test_filter_survives_a_table_and_back(open_list, make):
    make("carts", "cartons")
    page = open_list()
    page.get_by_label("Filter tables by name, tag or description").press_sequentially("cart")
    page.wait_for_url("**/?q=cart")
    expect(page.locator("#tables tbody tr")).to_have_count(2)
    expect(page.locator("#listing-count")).to_have_text("2 tables")
    expect(page.get_by_label("Filter tables by name, tag or description")).to_be_focused()
    page.get_by_role("link", name="carts", exact=True).click()
    page.wait_for_url("**/t/carts/")
    page.go_back()
    expect(page.get_by_label("Filter tables by name, tag or description")).to_have_value("cart")
    assert names(page) == ["cartons", "carts"]


@pytest.mark.long
def test_shift_ticks_a_range(open_list, make):
    make("ticked1", "ticked2", "ticked3")
    page = open_list("?q=ticked")
    page.get_by_label("Select ticked1").click()
    page.get_by_label("Select ticked3").click(modifiers=["Shift"])
    expect(page.get_by_text("3 tables selected")).to_be_visible()
    expect(page.get_by_label("Select all tables on this page")).to_be_checked()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("group", name="Selected tables")).to_be_hidden()


@pytest.mark.long
def test_the_list_is_there_before_the_sizes(open_list):
    page = open_list("tables/new/")
    sizes = Held(page, "**/tables/sizes/*")
    page.goto(ACCOUNT + "?q=")
    expect(page.get_by_role("link", name="people", exact=True)).to_be_visible()
    page.get_by_label("Select people").check()
    expect(page.locator("#entities-people")).to_have_text("Loading")
    sizes.take().continue_()
    expect(page.locator("#entities-people")).to_have_text("60")
    expect(page.locator("#partitions-people")).to_have_text("1")
    # boxes ticked meanwhile stay ticked
    expect(page.get_by_label("Select people")).to_be_checked()
    assert sizes.requests == []  # asked for once


@pytest.mark.long
def test_ticked_tables_are_deleted_and_come_back(open_list, make, service):
    make("first", "second")
    page = open_list()
    page.get_by_label("Select first").check()
    page.get_by_label("Select second").check()
    bar = page.get_by_role("group", name="Selected tables")
    expect(bar.get_by_text("2 tables selected")).to_be_visible()
    check_axe(page, "main")
    bar.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted 2 tables.")).to_be_visible()
    assert not {"first", "second"} & {table.name for table in service.list_tables()}
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="second", exact=True)).to_be_visible()


@pytest.mark.long
def test_name_rules_are_shown_while_typing(open_list, make):
    page = open_list("tables/new/")
    field = page.get_by_label("Name")
    for name, rule in (("1abc", "starting with a letter"), ("PeoplE", "people already exists")):
        field.fill(name)
        expect(page.locator("#name-rules .broken")).to_contain_text([rule])
        expect(field).to_be_focused()


@pytest.mark.long
def test_deleting_in_a_protected_account_asks_for_its_name(open_page, admin, console):
    console.manage("account", "add", "guarded")
    page = open_page("/ui/a/guarded/", state=admin)
    check(page)  # an account without tables
    page.get_by_role("button", name="Create a table with sample data").click()
    page.wait_for_url("**/t/people/")
    page.goto("/ui/a/guarded/settings/")
    page.get_by_label("Protected").check()
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".toast", has_text="Saved the settings").wait_for()
    page.goto("/ui/a/guarded/")
    page.get_by_label("Select people").check()
    page.get_by_role("group", name="Selected tables").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete tables in guarded")
    check_axe(page, "dialog[open]")
    dialog.get_by_label("Type guarded to confirm").fill("guarded")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted people.")).to_be_visible()


@pytest.mark.long
def test_hostile_notes_fit_a_narrow_page(open_list, make):
    make("hostile")
    page = open_list("t/hostile/settings/", width=320)
    page.get_by_label("Description").fill("<img src=x onerror=alert(1)> \u202e" + "W" * 300)
    page.get_by_label("Tags").press_sequentially("<b>bold</b>," + "t" * 32 + ",")
    page.get_by_role("button", name="Save").click()
    page.locator(".toast", has_text="Saved the notes").wait_for()
    check_reflow(page)
    page.goto(ACCOUNT)
    expect(page.get_by_text("<b>bold</b>").first).to_be_visible()
    check_reflow(page)
    check_axe(page, "main")


@pytest.mark.long
def test_the_sidebar_finds_a_table_beyond_those_that_it_lists(open_list, service):
    others = [f"beside{number:03}" for number in range(101)]
    for name in [*others, "zebra"]:
        service.create_table(name)
    page = open_list("overview/")
    tables = page.locator("#sidebar-tables")
    expect(tables.get_by_role("link", name="zebra")).to_have_count(0)
    page.get_by_label("Filter tables", exact=True).press_sequentially("Zeb")
    zebra = tables.get_by_role("link", name="zebra")
    expect(zebra).to_be_visible()
    assert tables.get_by_role("link", name="All tables").get_attribute("href").endswith("?q=Zeb")
    page.get_by_label("Filter tables", exact=True).fill("")
    assert tables.get_by_role("link", name="All tables").get_attribute("href").endswith("/devstoreaccount1/")
    page.get_by_label("Filter tables", exact=True).fill("zebra")
    zebra.click()
    page.wait_for_url("**/t/zebra/")
    for name in [*others, "zebra"]:
        service.delete_table(name)
