"""Names, roles and states of overlays made by scripts; pages in forced colors and without motion."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.long
ACCOUNT = "/ui/a/devstoreaccount1/"
TABLE = ACCOUNT + "t/spoken/"
NAME = "[data-grid] td[data-property=Name]"

# keys that are pressed in the first cell of Name, where something then appears, and its accessibility tree
OVERLAYS = {
    "menu of a cell": (
        ["Shift+F10"],
        "#cell-menu",
        """
        - 'dialog "Name: Ada"':
          - button "Open entity Alt O"
          - button /Edit/
          - button /View value/
          - separator
          - button "Filter by this value"
          - button "Exclude this value"
          - button "Greater than this value"
          - button "Less than this value"
          - separator
          - button /Copy value/
          - button /Copy as JSON/
          - button "Copy link"
          - separator
          - button /Duplicate/
          - button "Delete entity ⇧ Del"
        """,
    ),
    "editor of a cell": (
        ["ArrowRight", "x"],
        ".cell-layer",
        """
        - form "Edit Age":
          - textbox "Age" [invalid]: x
          - combobox "Type":
            - option "Int32" [selected]
          - button "Remove property"
          - link "Cancel"
          - button "Save"
          - status:
            - paragraph:
              - text: Enter a whole number.
              - button "Use String"
        """,
    ),
    "menu of a column": (
        ["ArrowUp", "Enter"],
        "#column-menu",
        """
        - dialog "Name":
          - button /Sort ascending/
          - button /Sort descending/
          - separator
          - button "Move left"
          - button "Move right"
          - button "Pin"
          - button "Hide"
          - separator
          - textbox "Width"
          - button "Set"
          - button "Fit to content"
        """,
    ),
    "selected rows": (
        ["Control+a"],
        "#selection",
        """
        - form "Selected entities":
          - status: 3 selected
          - button "Clear"
          - button "Delete"
        """,
    ),
    "entity in the drawer": (
        ["Alt+o"],
        "#drawer",
        """
        - complementary "Entity":
          - heading "PartitionKey se RowKey 0" [level=2]
          - button "Previous entity" [disabled]
          - button "Next entity"
          - link "Open as a page"
          - button "More actions"
          - button "Close"
          - navigation "Entity views"
          - group "Properties":
            - combobox "Type of Age"
            - textbox "Age": "36"
            - checkbox "Remove Age"
            - button "Add property"
          - combobox "How to save"
        """,
    ),
    "new entity": (
        ["Alt+n"],
        "#drawer",
        """
        - complementary "Entity":
          - heading "New entity" [level=2]
          - button "Close"
          - textbox "PartitionKey"
          - textbox "RowKey"
          - group "Properties"
          - button "Insert"
        """,
    ),
    "search": (
        ["Control+k", *"spoken"],
        "#palette",
        """
        - combobox "Go to a table, account or page" [expanded]: spoken
        - listbox "Results":
          - group "Tables":
            - text: Tables
            - option "spoken devstoreaccount1" [selected]
        - status: /found/
        """,
    ),
}


@pytest.fixture(scope="module")
def spoken(service):
    with service.create_table("spoken") as table:
        for number in range(3):
            table.create_entity({"PartitionKey": "se", "RowKey": f"{number}", "Name": "Ada", "Age": 36})
    yield
    service.delete_table("spoken")


@pytest.fixture
def page(open_page, admin, spoken):
    return open_page(ACCOUNT, state=admin, reduced_motion="reduce")


def open_grid(page):
    page.goto(f"{TABLE}?cols=Name,Age")
    page.locator(NAME).first.click()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_has_names_roles_and_states(page, overlay):
    keys, part, tree = OVERLAYS[overlay]
    open_grid(page)
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator(part)).to_match_aria_snapshot(tree)


def test_a_grid_has_names_roles_and_states(page):
    page.goto(f"{TABLE}?f=RowKey+eq+'0'&cols=Name,Missing&sort=-Name")
    expect(page.locator(".grid-region")).to_match_aria_snapshot("""
      - grid "Entities":
        - rowgroup:
          - row:
            - columnheader "Select this page":
              - checkbox "Select this page"
            - columnheader "PartitionKey, String"
            - columnheader "RowKey, String"
            - columnheader "Name, String"
            - columnheader "Missing"
        - rowgroup:
          - row:
            - gridcell:
              - checkbox "Select se, 0"
              - link "Open se, 0"
            - gridcell "se"
            - gridcell "0"
            - gridcell "Ada"
            - gridcell "not set"
    """)
    expect(page.locator("th[data-property=Name]")).to_have_attribute("aria-sort", "descending")


def test_the_question_about_unsaved_text_and_a_toast_have_names(page):
    open_grid(page)
    page.keyboard.press("Alt+o")
    page.locator("#drawer").get_by_label("Age", exact=True).fill("37")
    page.keyboard.press("Escape")
    expect(page.locator("#unsaved")).to_match_aria_snapshot("""
      - dialog "Leave without saving?":
        - heading "Leave without saving?" [level=2]
        - paragraph
        - button "Leave"
        - button "Keep editing"
    """)
    page.get_by_role("button", name="Keep editing").click()
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.locator("#toasts")).to_match_aria_snapshot("""
      - status:
        - paragraph: /Saved 1 property/
        - button "Undo"
        - button "Close"
    """)


def test_forced_colors_keep_selection_and_focus_visible(page):
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    open_grid(page)
    outline = "it => getComputedStyle(it).outlineStyle + ' ' + parseFloat(getComputedStyle(it).outlineWidth)"
    assert re.fullmatch(r"(solid|auto) [1-9].*", page.locator(NAME).first.evaluate(outline))
    tabs = page.locator(".table-tabs a").evaluate_all(
        "all => all.map(it => getComputedStyle(it).borderBottomColor)"
    )
    assert tabs.count(tabs[0]) == 1  # the current one, where transparent lines are drawn
    page.keyboard.press("Control+k")
    chosen = page.locator("#palette [aria-selected=true]")
    assert re.fullmatch(r"solid [1-9].*", chosen.evaluate(outline))
    page.emulate_media(forced_colors="none")


def test_reduced_motion_moves_nothing(page):
    page.goto(TABLE)
    moving = """() => document.getAnimations().filter(it => it.playState === "running"
        && it.effect.getTiming().duration > 20 && !it.effect.target?.closest?.("[aria-busy]")).length"""
    page.locator("a[data-drawer]").first.click()
    page.locator("#drawer [data-entity]").first.wait_for(state="attached")
    assert page.evaluate(moving) == 0
