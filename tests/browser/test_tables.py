"""The list of tables, making and deleting them: the lines T1 to T5 of the console's acceptance list."""

import re

import pytest
from azure.data.tables import TableAccessPolicy
from playwright.sync_api import expect

from tests.browser.page import Held, check, check_axe, check_reflow

ACCOUNT = "/ui/a/devstoreaccount1/"
ENTITIES = 40


@pytest.fixture
def open_list(open_page, admin, tables):
    def open_it(path="", **options):
        return open_page(ACCOUNT + path, state=admin, **options)

    return open_it


@pytest.fixture
def make(service):
    """`make("a", "b")`: these tables, with entities and a policy, gone after the test."""
    made = []

    def make(*names):
        for name in names:
            made.append(name)
            table = service.create_table_if_not_exists(name)
            rows = [{"PartitionKey": "p", "RowKey": f"{number:03}"} for number in range(ENTITIES)]
            table.submit_transaction([("upsert", row) for row in rows])
            table.set_table_access_policy({"reader": TableAccessPolicy(permission="r")})
            table.close()

    yield make
    for name in made:
        service.delete_table(name)


def names(page):
    return page.locator("#tables tbody th a.mono").all_inner_texts()


def test_t1_filter_survives_a_table_and_back(open_list, make):
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
    page.get_by_label("Filter tables by name, tag or description").fill("nothing-like-it")
    expect(
        page.get_by_text("No table contains “nothing-like-it” in its name, tags or description")
    ).to_be_visible()
    page.get_by_role("link", name="Show all tables").click()
    expect(page.get_by_role("link", name="people", exact=True)).to_be_visible()


def test_t2_delete_several_and_undo(open_list, make, service):
    make("first", "second")
    page = open_list("t/second/settings/")
    page.get_by_label("Description").fill("kept")
    page.get_by_label("Tags").press_sequentially("prod,")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved the notes for second.")).to_be_visible()
    page.goto(ACCOUNT)
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
    for name in ("first", "second"):
        with service.get_table_client(name) as table:
            assert len(list(table.list_entities())) == ENTITIES
            assert list(table.get_table_access_policy()) == ["reader"]
    page.goto(ACCOUNT + "t/second/settings/")
    expect(page.get_by_label("Description")).to_have_value("kept")
    expect(page.locator(".chip")).to_have_text(re.compile("prod"))


def test_tags(open_list, make):
    make("tagged")
    page = open_list()
    page.get_by_label("Select tagged").check()
    page.get_by_label("Tags to add or remove").fill("blue, red")
    page.get_by_role("button", name="Add tags").click()
    expect(page.get_by_text("Tagged tagged.")).to_be_visible()
    page.locator("a.tag", has_text="blue").click()
    page.wait_for_url("**/?tag=blue")
    assert names(page) == ["tagged"]
    check(page)


def test_sorts_on_a_phone(open_list, make):
    make("phone1", "phone2")
    page = open_list("?q=phone", width=390)
    page.get_by_label("Sort by").select_option("Created")
    page.wait_for_url("**/?q=phone&sort=-created")
    expect(page.locator("#tables tbody th a.mono")).to_have_text(["phone2", "phone1"])
    check(page)


def test_exports_several_and_removes_their_tags(open_list, make):
    make("shipped1", "shipped2")
    page = open_list("?q=shipped")
    page.get_by_label("Select all tables on this page").check()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Export", exact=True).click()
    assert download.value.suggested_filename == "devstoreaccount1.zip"
    expect(page.get_by_role("status").filter(has_text="2 tables selected")).to_be_visible()  # the page stays
    page.get_by_label("Tags to add or remove").fill("hot")
    page.get_by_role("button", name="Add tags").click()
    expect(page.locator("#tables .tag", has_text="hot")).to_have_count(2)
    page.get_by_label("Select shipped1").check()
    page.get_by_label("Tags to add or remove").fill("hot")
    page.get_by_role("button", name="Remove tags").click()
    expect(page.locator("#tables .tag", has_text="hot")).to_have_count(1)
    expect(page.locator(".toast", has_text="Removed tags from shipped1.")).to_be_visible()


def test_what_assistive_technology_finds_of_menus_and_search(open_list, make):
    """Names, roles and states of what lies over a page, and that focus comes back from it."""
    make("assisted")
    page = open_list("?q=assisted", forced_colors="active")
    page.keyboard.press("Control+k")
    page.keyboard.type("assisted")  # at once, while the code of the palette is loaded
    palette = page.get_by_role("dialog", name="Search")
    expect(palette).to_match_aria_snapshot("""
      - dialog "Search":
        - combobox "Go to a table, account or page" [expanded]: assisted
        - listbox "Results":
          - group "Tables":
            - text: Tables
            - option "assisted devstoreaccount1" [selected]
        - status: /1 found/
    """)
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^User menu")).click()
    expect(page.locator("#user-menu")).to_match_aria_snapshot("""
      - paragraph: ada@example.org
      - link "Profile"
      - link "Security"
      - button "Keyboard shortcuts"
      - link "About"
    """)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Profile")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name=re.compile("^User menu"))).to_be_focused()
    table = page.get_by_role("table")
    expect(table).to_match_aria_snapshot("""
      - table:
        - rowgroup:
          - row:
            - columnheader "Select all tables on this page"
            - columnheader "Name"
            - columnheader "Entities"
            - columnheader "Size"
            - columnheader "Requests in 24 h"
            - columnheader "Last write"
            - columnheader "Policies"
        - rowgroup:
          - row:
            - cell "Select assisted"
            - rowheader "assisted"
            - cell "40"
            - cell
            - cell
            - cell
            - 'cell "Policies of assisted: 1 of 5"'
    """)
    page.goto(f"{ACCOUNT}t/assisted/acl/")
    tabs = page.locator(".table-tabs a")
    colours = tabs.evaluate_all("links => links.map((it) => getComputedStyle(it).borderBottomColor)")
    assert len(set(colours)) == 2, (
        colours
    )  # the current one differs from the others without any colour of ours


def test_shift_ticks_a_range(open_list, make):
    make("ticked1", "ticked2", "ticked3")
    page = open_list("?q=ticked")
    page.get_by_label("Select ticked1").click()
    page.get_by_label("Select ticked3").click(modifiers=["Shift"])
    expect(page.get_by_text("3 tables selected")).to_be_visible()
    expect(page.get_by_label("Select all tables on this page")).to_be_checked()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("group", name="Selected tables")).to_be_hidden()


def test_t3_refused_names(open_list, make):
    page = open_list("tables/new/", expect=422)
    field = page.get_by_label("Name")
    for name, rule in (("1abc", "starting with a letter"), ("PeoplE", "people already exists")):
        field.fill(name)
        expect(page.locator("#name-rules .broken")).to_contain_text([rule])
        expect(field).to_be_focused()
    page.get_by_role("button", name="Create table").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    check(page)


def test_t4_the_list_is_there_before_the_sizes(open_list):
    page = open_list("tables/new/")
    sizes = Held(page, "**/tables/sizes/*")
    page.goto(ACCOUNT + "?q=")
    expect(page.get_by_role("link", name="people", exact=True)).to_be_visible()
    page.get_by_label("Select people").check()
    expect(page.locator("#entities-people")).to_have_text("Loading")
    sizes.take().continue_()
    expect(page.locator("#entities-people")).to_have_text("60")
    expect(page.locator("#partitions-people")).to_have_text("1")
    # what was ticked meanwhile stays
    expect(page.get_by_label("Select people")).to_be_checked()
    assert sizes.requests == []  # asked for once


def test_a_protected_account_wants_its_name(open_page, admin, console):
    page = open_page("/ui/a/new/", state=admin)
    page.get_by_label("Name", exact=True).fill("guarded")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/created/")
    page.goto("/ui/a/guarded/")
    check(page)  # of an account without tables
    page.get_by_role("button", name="Create a table with sample data").click()
    page.wait_for_url("**/t/people/")
    page.goto("/ui/a/guarded/settings/")
    page.get_by_label("Protected").check()
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".toast", has_text="Saved the settings").wait_for()
    page.goto("/ui/a/guarded/")
    page.get_by_label("Select people").check()
    tick = "box => getComputedStyle(box, '::before').width"
    assert page.get_by_label("Select people").evaluate(tick) == "10px"
    delete = page.get_by_role("group", name="Selected tables").get_by_role("button", name="Delete")
    delete.click()
    dialog = page.get_by_role("dialog", name="Delete tables in guarded")
    expect(dialog).to_contain_text("protected")
    check_axe(page, "dialog[open]")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="people", exact=True)).to_be_visible()
    delete.click()
    dialog.get_by_label("Type guarded to confirm").fill("guarded")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted people.")).to_be_visible()


def test_hostile_notes_in_a_narrow_page(open_list, make):
    make("hostile")
    page = open_list("t/hostile/settings/", width=320)
    page.get_by_label("Description").fill("<img src=x onerror=alert(1)> \u202e" + "W" * 300)
    page.get_by_label("Tags").fill("<b>bold</b>, عربي, " + "t" * 32)
    page.get_by_role("button", name="Save").click()
    page.locator(".toast", has_text="Saved the notes").wait_for()
    check_reflow(page)
    page.goto(ACCOUNT)
    expect(page.get_by_text("<b>bold</b>").first).to_be_visible()
    check_reflow(page)
    check_axe(page, "main")
