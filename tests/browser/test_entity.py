"""The form of an entity in a browser: on its page, and in a drawer beside the grid."""

import re
from urllib.parse import urlencode

import pytest
from azure.data.tables import EdmType, EntityProperty
from playwright.sync_api import expect

from tests.browser.page import Held, check_axe, check_reflow

TABLE = "/ui/a/devstoreaccount1/t/edited/"
ENTITY = re.compile(r"/entity/\?")  # the address that answers with an entity
EXACT = {
    "Big": EntityProperty(2**63 - 1, EdmType.INT64),
    "Zero": -0.0,
    "Nan": float("nan"),
    "Since": EntityProperty("2025-03-19T22:01:55.1234567Z", EdmType.DATETIME),
    "Text": "\n '\"\\%s {{ 7 }} <img src=x onerror=alert(1)> \x00 مرحبا 🦊\n",
    "Large": bytes(range(256)) * 256,
}


@pytest.fixture(scope="module")
def edited(service):
    """Make a table with the SDK."""
    with service.create_table("edited") as table:
        yield table


@pytest.fixture
def open_entity(open_page, admin, edited):
    """Return `open_entity("ada", Name="Ada")`, which makes an entity of that RowKey and opens its page."""

    def open_it(
        row_key, *, partition_key="se", expect=200, path="entity/", tab="form", options=None, **values
    ):
        edited.upsert_entity({"PartitionKey": partition_key, "RowKey": row_key, **values}, mode="replace")
        return open_page(
            address(row_key, partition_key, path, tab), state=admin, expect=expect, **(options or {})
        )

    return open_it


def address(row_key, partition_key="se", path="entity/", tab="form"):
    more = {} if tab == "form" else {"tab": tab}
    return f"{TABLE}{path}?{urlencode({'pk': partition_key, 'rk': row_key, **more})}"


def press(page, name):
    # the button to save counts the changes
    result = re.compile("^Save( \\d+ changes?)?$") if name == "Save" else name
    page.get_by_role("button", name=result, exact=True).click()


def field(page, name):
    return page.get_by_label(name, exact=True)


def said(page, text):
    page.locator(".toast", has_text=text).wait_for()


@pytest.mark.parametrize("width", [1440, 390])
def test_short_values_leave_no_gap_beside_them(open_entity, width):
    page = open_entity("pairs", A=1, B=2.5, Big=EXACT["Big"], Name="Ada", On=True, options={"width": width})
    field(page, "Big").wait_for()
    boxes = [it.bounding_box() for it in page.locator(".property").all()]
    right = max(it["x"] + it["width"] for it in boxes)
    rows = {round(it["y"]): it["x"] + it["width"] for it in boxes}  # the last one of each line
    assert len(rows) == 4 and all(abs(end - right) < 1 for end in rows.values())
    check_axe(page)


def test_names_of_suggested_properties_are_whole_on_a_narrow_page(open_entity):
    page = open_entity("whole", path="entity/new/", Delivered=True, Balance=2.5, options={"width": 390})
    for name in ("Delivered", "Balance"):
        label = page.locator(".property-name > label", has_text=re.compile(f"^{name}$"))
        assert label.evaluate("it => it.scrollWidth <= it.clientWidth"), name


def test_other_values_stay_as_they_are(open_entity, edited):
    page = open_entity("exact", **EXACT, Age=36)
    before = edited.get_entity("se", "exact")
    field(page, "Age").fill("37")
    page.get_by_text("1 change", exact=True).wait_for()
    press(page, "Save")
    said(page, "Saved 1 property")
    after = edited.get_entity("se", "exact")
    assert after.pop("Age") == 37
    assert {**before, "Nan": None} == {**after, "Age": 36, "Nan": None}
    assert after["Since"].tables_service_value == "2025-03-19T22:01:55.1234567Z"
    page.locator(".toast").get_by_role("button", name="Undo").click()
    page.locator(".toast", has_text="Saved 1 property").wait_for(state="detached")
    assert edited.get_entity("se", "exact")["Age"] == 36


@pytest.mark.long
def test_a_type_is_changed_with_a_preview(open_entity, edited):
    page = open_entity("types", Value=1.5, Age=36)
    page.get_by_label("Type of Value").select_option("Edm.Int32")
    page.get_by_text("The digits after the decimal point are lost.").wait_for()
    expect(field(page, "Value")).to_have_value("1")
    page.get_by_label("Convert anyway").check()
    field(page, "Age").fill("5454161346626")
    press(page, "Use Int64")
    page.get_by_text("out of range").wait_for(state="detached")
    expect(page.get_by_label("Type of Age")).to_have_value("Edm.Int64")
    press(page, "Save")
    said(page, "Saved 2 properties")
    entity = edited.get_entity("se", "types")
    assert (entity["Value"], entity["Age"]) == (1, EntityProperty(5454161346626, EdmType.INT64))


@pytest.mark.long
def test_a_late_conversion_keeps_text_and_focus(open_entity, edited):
    page = open_entity("slow", Age=36)
    held = Held(page, "**/edited/entity/row/")
    kind, value = page.get_by_label("Type of Age"), field(page, "Age")
    for type_ in ("Int64", "Double"):  # the second gives the first up
        kind.select_option(f"Edm.{type_}")
        held.take()
    value.focus()
    page.keyboard.press("End")
    with page.expect_event("requestfailed"):
        page.keyboard.insert_text("50")
    held.take().continue_()
    page.locator("[name^=was-][value='Edm.Double']").wait_for(state="attached")
    expect(value).to_be_focused()
    page.keyboard.type("1")
    expect(value).to_have_value("36501.0")
    expect(kind).to_have_value("Edm.Double")
    press(page, "Save")
    said(page, "Saved 1 property")
    assert edited.get_entity("se", "slow")["Age"] == 36501.0


@pytest.mark.long
def test_json_errors_are_shown_at_their_position(open_entity, edited):
    page = open_entity("json", tab="json", expect=422, **EXACT)
    text = page.locator("#text")
    text.fill(text.input_value().replace("Edm.Int64", "Edm.Int46"))
    press(page, "Save")
    page.get_by_role("link", name="Line 4, column 21").wait_for()
    expect(text).to_have_js_property("selectionStart", text.input_value().index('"Edm.Int46"'))
    check_axe(page, "main")


@pytest.mark.long
def test_changes_of_other_users_are_merged(open_entity, edited):
    page = open_entity("conflict", expect=412, A="1", B="1")
    edited.update_entity({"PartitionKey": "se", "RowKey": "conflict", "A": "theirs", "B": "theirs"})
    field(page, "A").fill("mine")
    press(page, "Save")
    page.get_by_text("Someone else saved this entity").wait_for()
    check_axe(page, "main")
    check_reflow(page)
    page.get_by_label("A: your value").check()
    press(page, "Save merged")
    said(page, "Saved the merged version")
    entity = edited.get_entity("se", "conflict")
    assert [entity[name] for name in "AB"] == ["mine", "theirs"]


def test_leaving_asks_once(open_entity):
    page = open_entity("guarded", Name="Ada", Age=36)
    dialog = page.locator("#unsaved")
    page.get_by_role("link", name="JSON").click()
    page.wait_for_url("**tab=json")
    page.go_back()
    field(page, "Name").fill("Eva")
    page.get_by_role("link", name="JSON").click()
    dialog.get_by_role("button", name="Keep editing").click()
    expect(field(page, "Name")).to_have_value("Eva")
    page.get_by_role("link", name="JSON").click()
    dialog.get_by_role("button", name="Leave").click()
    page.wait_for_url("**tab=json")


@pytest.mark.long
def test_saves_before_continuing(open_entity, edited):
    page = open_entity("goes", Name="Ada", Age=36, expect=422, options={"height": 720})
    goes_on = page.get_by_role("button", name="Save and continue")
    field(page, "Name").fill("Eva")
    page.get_by_role("link", name="JSON").click()
    goes_on.click()
    page.wait_for_url("**tab=json")
    assert edited.get_entity("se", "goes")["Name"] == "Eva"

    page.goto(f"{TABLE}?f=RowKey%20eq%20'goes'")
    drawer = page.locator("#drawer")
    page.locator("td[data-property=Name]").click()
    page.keyboard.press("Alt+o")
    field(drawer, "Name").fill("Zoe")
    page.keyboard.press("Escape")
    goes_on.click()
    expect(drawer).to_be_hidden()
    assert edited.get_entity("se", "goes")["Name"] == "Zoe"
    # errors must be fixed first
    page.locator("td[data-property=Name]").click()
    page.keyboard.press("Alt+o")
    field(drawer, "Age").fill("many")
    page.keyboard.press("Escape")
    goes_on.click()
    expect(drawer.locator("[data-error-summary]")).to_be_visible()


@pytest.mark.long
def test_the_drawer_opens_before_its_entity_comes(open_entity, edited):
    page = open_entity("late", Name="Ada", options={"reduced_motion": "reduce"})
    page.goto(f"{TABLE}?f=RowKey%20eq%20'late'")
    held = Held(page, ENTITY)
    drawer = page.locator("#drawer")
    page.locator("td[data-property=Name]").click()
    page.keyboard.press("Alt+o")
    waiting = drawer.locator("[data-drawer-waiting]")
    waiting.wait_for()
    room = drawer.bounding_box()
    held.take().continue_()
    field(drawer, "Name").wait_for()
    assert drawer.bounding_box() == room
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    # closed before it comes, it is not asked for any more
    page.keyboard.press("Alt+o")
    waiting.wait_for()
    held.take()
    with page.expect_event("requestfailed", lambda request: "/entity/?" in request.url):
        page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(drawer).to_be_empty()
    expect(page.locator("td[data-property=Name]")).to_be_focused()
    # a refused request leaves no empty placeholder
    page.keyboard.press("Alt+o")
    refusal = '<div class="toast problem" data-toast="error">Not now</div>'
    held.take().fulfill(status=409, headers={"X-Tablero-Problem": "409"}, body=refusal)
    expect(page.locator(".toast")).to_have_text("Not now")
    expect(drawer).to_be_hidden()
    expect(page.locator("td[data-property=Name]")).to_be_focused()


@pytest.mark.long
def test_steps_in_the_drawer_do_not_wait_for_each_other(open_entity, edited):
    for number in range(3):
        page = open_entity(f"step{number}", partition_key="steps", Name=str(number))
    page.goto(f"{TABLE}?f=PartitionKey%20eq%20'steps'")
    page.locator("td[data-property=Name]").first.click()
    page.keyboard.press("Alt+o")
    drawer = page.locator("#drawer")
    expect(drawer.locator(".drawer-head")).to_contain_text("step0")
    held = Held(page, ENTITY)
    page.keyboard.press("Alt+ArrowDown")
    held.take()
    with page.expect_event("requestfailed", lambda request: "step1" in request.url):
        page.keyboard.press("Alt+ArrowDown")
    held.take().continue_()
    expect(drawer.locator(".drawer-head")).to_contain_text("step2")
    # an answer that arrives after closing does not open it
    page.keyboard.press("Alt+ArrowUp")
    held.take()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(drawer).to_be_empty()


@pytest.mark.long
def test_versions_in_the_drawer(open_entity, edited):
    page = open_entity("past", Name="Ada")
    edited.update_entity({"PartitionKey": "se", "RowKey": "past", "Name": "Grace"}, mode="merge")
    edited.update_entity({"PartitionKey": "se", "RowKey": "past", "Name": "Hedy"}, mode="merge")
    page.goto(f"{TABLE}?f=RowKey%20eq%20'past'")
    page.evaluate("window.stayed = true")
    drawer = page.locator("#drawer")
    page.locator("td[data-property=Name]").click()
    page.keyboard.press("Alt+o")
    drawer.get_by_role("link", name="History").click()
    versions = drawer.locator("[data-version]")
    expect(versions).to_have_count(3)
    check_axe(page, "#drawer")
    versions.nth(1).click()
    expect(versions.nth(1)).to_have_attribute("aria-current", "true")
    expect(drawer.locator(".version-changes").first).to_contain_text("Grace")
    versions.nth(0).click()
    expect(versions.nth(0)).to_have_attribute("aria-current", "true")
    press(drawer, "Restore selected properties")
    said(page, "Restored 1 property")
    expect(versions).to_have_count(4)
    expect(page.locator("td[data-property=Name]")).to_have_text("Grace")
    assert page.evaluate("window.stayed")


@pytest.mark.long
def test_a_reload_offers_a_new_entity_again(open_entity):
    page = open_entity("draft", Name="Ada")
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(TABLE)
    page.get_by_role("link", name="Add entity").click()
    field(page, "PartitionKey").fill("drafted")
    page.reload()
    offer = page.locator("#drawer .draft-offer")
    offer.get_by_role("button", name="Restore").click()
    expect(field(page, "PartitionKey")).to_have_value("drafted")
    page.reload()
    offer.get_by_role("button", name="Discard").click()
    page.reload()
    page.locator("[data-grid] td").first.wait_for()
    expect(page.locator("#drawer")).to_be_hidden()


@pytest.mark.long
def test_the_first_field_of_a_page_is_near_its_top(open_entity):
    page = open_entity("near", Name="Ada", options={"height": 720})
    assert page.locator(".property").first.bounding_box()["y"] < 230
    expect(page.locator(".entity-foot .primary")).to_be_in_viewport()
    page.set_viewport_size({"width": 390, "height": 844})
    check_reflow(page)


@pytest.mark.long
def test_adds_and_removes_properties_by_keyboard(open_entity, edited):
    page = open_entity("keyboard", Name="Ada", Old=1)
    page.get_by_role("button", name="Add property").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("Added")
    page.locator("[data-name]").last.press("Tab")
    expect(page.locator("[data-property-count]")).to_have_text("3", use_inner_text=True)
    page.keyboard.press("Tab")
    page.keyboard.type("yes")
    page.get_by_label("Remove Old").focus()
    page.keyboard.press("Space")
    page.get_by_text("2 changes", exact=True).wait_for()
    press(page, "Save")
    said(page, "Saved with Replace")
    entity = edited.get_entity("se", "keyboard")
    assert (dict(entity).get("Old"), entity["Added"]) == (None, "yes")


def test_a_drawer_beside_the_grid(open_entity, edited):
    page = open_entity("drawer", Name="Ada", options={"width": 1440})
    page.goto(f"{TABLE}?f=RowKey%20eq%20'drawer'")
    link = page.locator("tbody tr a[data-drawer]").first
    link.focus()
    page.keyboard.press("Enter")
    drawer = page.locator("#drawer")
    drawer.locator("#entity-form").wait_for()
    expect(page).to_have_url(re.compile("open="))
    assert page.evaluate("document.querySelector('#drawer').contains(document.activeElement)")
    check_axe(page, "#drawer")
    field(drawer, "Name").fill("Eva")
    press(drawer, "Save")
    said(page, "Saved 1 property")
    assert edited.get_entity("se", "drawer")["Name"] == "Eva"
    page.locator("tbody tr", has_text="Eva").wait_for()

    press(page, "Undo")
    expect(field(drawer, "Name")).to_have_value("Ada")
    assert edited.get_entity("se", "drawer")["Name"] == "Ada"

    page.reload()
    drawer.locator("#entity-form").wait_for()
    field(drawer, "Name").fill("Unsaved")
    page.keyboard.press("Escape")
    page.locator("#unsaved").get_by_role("button", name="Leave").click()
    drawer.wait_for(state="hidden")
    expect(page).not_to_have_url(re.compile("open="))
    assert re.search("Ada", page.locator("tbody").inner_text())


@pytest.mark.long
def test_the_drawer_lies_over_the_grid_and_gives_the_place_back(open_entity, edited):
    names = {f"P{number}": "x" for number in range(4)} | {"Items": 1, "Gift": True, "Weight": 0.5, "Big": 2}
    open_entity("over1", partition_key="over", **names, Since=EXACT["Since"], Photo=b"\x00" * 64)
    page = open_entity("over2", partition_key="over", **names, options={"width": 1280, "height": 720})
    page.goto(f"{TABLE}?top=25&f=PartitionKey%20eq%20'over'")
    region = page.locator(".grid-region")
    cell = page.locator("tbody tr").first.locator("td[data-property=P1]")
    cell.click()
    around, left = region.bounding_box(), region.evaluate("it => it.scrollLeft")
    page.keyboard.press("Alt+o")
    drawer = page.locator("#drawer")
    drawer.locator("#entity-form").wait_for()
    assert round(drawer.bounding_box()["width"]) == 480
    assert region.bounding_box() == around and region.evaluate("it => it.scrollLeft") == left
    check_axe(page, "#drawer")
    # ten properties without scrolling, one of them binary
    foot = drawer.locator(".entity-foot").bounding_box()
    last = drawer.locator(".property").last.bounding_box()
    assert drawer.locator(".property").count() == 10 and last["y"] + last["height"] <= foot["y"]
    # changed properties are marked, and the next entity asks about them first
    field(drawer, "P1").fill("y")
    expect(drawer.locator(".property[data-changed] .was")).to_have_text("was x", use_inner_text=True)
    page.keyboard.press("Alt+ArrowDown")
    page.locator("#unsaved").get_by_role("button", name="Leave").click()
    expect(drawer.locator(".drawer-head")).to_contain_text("over2")
    expect(page.locator("tr[data-opened]")).to_have_attribute("aria-rowindex", "3")
    expect(drawer.get_by_role("button", name="Next entity")).to_be_disabled()
    page.keyboard.press("Escape")
    drawer.wait_for(state="hidden")
    assert page.evaluate(
        "[document.activeElement.dataset.property, document.activeElement.parentElement.rowIndex]"
    ) == ["P1", 2]
    assert "open=" not in page.url and "top=25" in page.url
    # wide enough for both: beside each other
    page.set_viewport_size({"width": 1680, "height": 720})
    page.keyboard.press("Alt+o")
    drawer.locator("#entity-form").wait_for()
    assert region.bounding_box()["x"] + region.bounding_box()["width"] <= drawer.bounding_box()["x"]


@pytest.mark.long
def test_adds_and_duplicates_in_the_drawer(open_entity, edited):
    page = open_entity("one", partition_key="adds", Name="Ada", Photo=b"\x00", options={"width": 1280})
    page.goto(f"{TABLE}?top=25&f=PartitionKey%20eq%20'adds'")
    page.evaluate("window.stayed = true")
    drawer = page.locator("#drawer")
    page.locator("td[data-property=Name]").click()
    page.keyboard.press("Alt+d")
    drawer.locator("#entity-form").wait_for()
    field(drawer, "RowKey").fill("")
    press(drawer, "Insert")
    drawer.get_by_text("RowKey is empty").wait_for()
    field(drawer, "RowKey").fill("two")
    press(drawer, "Insert")
    drawer.wait_for(state="hidden")
    said(page, "Inserted the entity")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tr[aria-rowindex='3'] td[data-property=Name]")).to_be_focused()
    # an entity that is not on this page leaves no other row to the next key, and can be opened
    page.keyboard.press("Alt+n")
    field(drawer, "PartitionKey").fill("elsewhere")
    field(drawer, "RowKey").fill("1")
    page.keyboard.press("Control+Enter")
    drawer.wait_for(state="hidden")
    expect(page.get_by_role("region", name="Entities")).to_be_focused()
    page.locator(".toast").last.get_by_role("link", name="Open").click()
    expect(drawer.locator("[data-entity]")).to_contain_text("elsewhere")
    page.keyboard.press("Escape")
    # a form in which nothing was typed is left without a question
    page.keyboard.press("Alt+n")
    field(drawer, "PartitionKey").wait_for()
    page.keyboard.press("Escape")
    drawer.wait_for(state="hidden")
    page.keyboard.press("Alt+n")
    field(drawer, "PartitionKey").fill("adds")
    field(drawer, "RowKey").fill("three")
    page.keyboard.press("Control+Enter")
    expect(page.locator("tbody tr")).to_have_count(3)
    assert edited.get_entity("adds", "two")["Name"] == "Ada"
    # deleted from there, the grid stays where it is
    page.locator("tbody tr").last.locator("a.open").focus()
    page.keyboard.press("Enter")
    drawer.get_by_role("button", name="More actions").click()
    press(drawer, "Delete")
    expect(page.locator("tbody tr")).to_have_count(2)
    assert page.evaluate("window.stayed") and "top=25" in page.url


@pytest.mark.long
def test_an_inserted_entity_is_focused_despite_a_stale_refresh(open_entity, edited):
    page = open_entity("one", partition_key="late", Name="Ada", options={"width": 1280})
    page.goto(f"{TABLE}?f=PartitionKey%20eq%20'late'")
    refresh = Held(page, re.compile(re.escape(f"{TABLE}?")), fetched=True)
    page.evaluate("document.dispatchEvent(new CustomEvent('grid:changed'))")
    refresh.wait()
    page.locator("td[data-property=Name]").click()
    page.keyboard.press("Alt+d")
    field(page.locator("#drawer"), "RowKey").fill("two")
    press(page.locator("#drawer"), "Insert")
    said(page, "Inserted the entity")
    refresh.release()
    expect(page.locator("tr[aria-rowindex='3'] td[data-property=Name]")).to_be_focused()


@pytest.mark.long
def test_on_a_phone_the_drawer_is_the_page(open_entity, edited):
    page = open_entity("phone", Name="Ada", Age=36, options={"width": 390, "height": 844})
    page.goto(f"{TABLE}?f=RowKey%20eq%20'phone'")
    page.get_by_role("link", name="Open se, phone").click()
    drawer = page.locator("#drawer")
    field(drawer, "Name").wait_for()
    drawer.evaluate("it => Promise.all(it.getAnimations().map(one => one.finished))")
    assert drawer.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    assert field(drawer, "Name").bounding_box()["width"] >= 350
    assert field(drawer, "Name").bounding_box()["height"] >= 44
    foot = drawer.locator(".entity-foot").bounding_box()
    assert foot["y"] + foot["height"] == 844
    check_reflow(page)


@pytest.mark.long
def test_keys_of_a_kibibyte_leave_room_for_the_rest(open_entity):
    keys = {"partition_key": "x" * 512, "row_key": ("words and " * 52)[:512]}
    page = open_entity(**keys, **{"N" * 255: 1})
    assert page.locator("h1").bounding_box()["height"] < 200
    place = page.locator(".crumbs li", has_text="edited")
    assert place.evaluate("it => it.scrollWidth <= it.clientWidth")
    page.set_viewport_size({"width": 640, "height": 450})  # 1280 × 900 at 200 %
    for path in (address(**keys), TABLE, f"{TABLE}?view=json", f"{TABLE}design/", "/ui/a/devstoreaccount1/"):
        page.goto(path)
        check_reflow(page)
