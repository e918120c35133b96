"""What a screen reader is told during the ten jobs; pages in forced colors and without motion."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import confirm_identity

ACCOUNT = "/ui/a/devstoreaccount1/"
TABLE = ACCOUNT + "t/spoken/"
JOBS = {
    "open a table": (
        ACCOUNT + "?q=spoken",
        "main table tbody",
        """
        - rowgroup:
          - row /spoken/:
            - cell "Select spoken":
              - checkbox "Select spoken"
            - rowheader "spoken":
              - link "spoken"
        """,
    ),
    "read entities": (
        TABLE,
        "[data-grid]",
        """
        - rowgroup:
          - row:
            - columnheader "Select this page":
              - checkbox "Select this page"
            - columnheader "PartitionKey, String"
            - columnheader "RowKey, String"
            - columnheader "Name, String"
        - rowgroup:
          - row /Select se, 0/:
            - gridcell:
              - checkbox "Select se, 0"
              - link "Open se, 0"
            - gridcell "se"
            - gridcell "0"
            - gridcell "Ada"
        """,
    ),
    "export a query": (
        TABLE + "export/?f=Name+eq+%27Ada%27",
        "main",
        """
        - heading /Export/ [level=1]
        - group
        - button /Export/
        """,
    ),
    "import a file": (
        TABLE + "import/",
        "main",
        """
        - heading "Import a file" [level=1]
        - list "Steps":
          - listitem: File
          - listitem: Columns
          - listitem: Check
          - listitem: Import
        - button "Drop a file here, or choose one"
        - textbox "Or paste rows"
        - button "Continue"
        """,
    ),
    "create a SAS token": (
        ACCOUNT + "sas/new/?table=spoken",
        "main",
        """
        - heading "New SAS token" [level=1]
        - group "Scope":
          - radio "One table" [checked]
          - radio "Entire account"
        - combobox "Table": spoken
        - combobox "Policy"
        - group "Permissions":
          - checkbox "r Query" [checked]
          - checkbox "a Add"
        - combobox "Expiry"
        """,
    ),
    "copy a connection string": (
        ACCOUNT + "keys/",
        "main",
        """
        - heading "Keys" [level=1]
        - region "key1":
          - heading "key1" [level=2]
          - group "Value of key1": hidden
          - button "Reveal key1"
          - button "Copy key1"
        - region "Connect an application":
          - heading "Connect an application" [level=2]
        """,
    ),
    "add a policy": (
        TABLE + "acl/",
        "main",
        """
        - button "Add policy"
        """,
    ),
}


@pytest.fixture(scope="module")
def page(pool, console, admin, service):
    """One page for all of it."""
    with service.create_table("spoken") as table:
        for number in range(3):
            table.create_entity({"PartitionKey": "se", "RowKey": f"{number}", "Name": "Ada", "Age": 36})
    page = pool.take(base_url=console.url, state=admin, locale="en-US", reduced_motion="reduce")
    page.goto(ACCOUNT)
    confirm_identity(page)
    yield page
    pool.give_back(page)
    service.delete_table("spoken")


@pytest.mark.parametrize("job", JOBS)
def test_the_tree_of_a_job(page, job):
    address, part, tree = JOBS[job]
    page.goto(address)
    expect(page.locator(part).first).to_match_aria_snapshot(tree)


def test_the_trees_of_jobs_in_the_grid(page):
    page.goto(TABLE)
    cell = page.locator("[data-grid] td[data-property=Name]").first
    cell.click()
    page.keyboard.press("Shift+F10")
    expect(page.locator("#cell-menu")).to_match_aria_snapshot("""
      - 'dialog "Name: Ada"':
        - button "Open entity Alt O"
        - button "Edit Enter"
        - button "Filter by this value"
        - button "Delete entity"
    """)
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page.locator("#cell-editor")).to_match_aria_snapshot("""
      - form "Edit Name":
        - textbox "Name": Ada
        - combobox "Type"
        - button "Remove property"
        - button "Save"
    """)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    expect(page.locator("#selection")).to_match_aria_snapshot("""
      - form "Selected entities":
        - status: 3 selected
        - button "Delete"
    """)
    page.keyboard.press("Escape")
    page.locator("h1").first.click()
    page.keyboard.press("Alt+n")
    expect(page.locator("#drawer")).to_match_aria_snapshot("""
      - complementary "Entity":
        - heading "New entity" [level=2]
        - button "Close"
        - textbox "PartitionKey"
        - textbox "RowKey"
        - group "Properties"
        - button "Insert"
    """)


def test_forced_colors_keep_what_is_selected_and_focused_visible(page):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page.goto(TABLE)
    cell = page.locator("[data-grid] td[data-property=Name]").first
    cell.click()
    outline = "it => getComputedStyle(it).outlineStyle + ' ' + parseFloat(getComputedStyle(it).outlineWidth)"
    assert re.fullmatch(r"(solid|auto) [1-9].*", cell.evaluate(outline))
    current = page.locator(".table-tabs [aria-current=page]")
    assert current.evaluate("it => parseFloat(getComputedStyle(it).borderBottomWidth)") >= 1
    page.keyboard.press("Control+k")
    chosen = page.locator("#palette [aria-selected=true]")
    assert re.fullmatch(r"solid [1-9].*", chosen.evaluate(outline))
    page.keyboard.press("Escape")
    page.emulate_media(forced_colors="none")


def test_reduced_motion_moves_nothing(page):
    page.goto(TABLE)
    moving = """() => document.getAnimations().filter(it => it.playState === "running"
        && it.effect.getTiming().duration > 20 && !it.effect.target?.closest?.("[aria-busy]")).length"""
    page.locator("a[data-drawer]").first.click()
    page.locator("#drawer [data-entity]").first.wait_for(state="attached")
    assert page.evaluate(moving) == 0
