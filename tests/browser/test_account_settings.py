"""The level of consistency is chosen, seen on the overview, and undone."""

from playwright.sync_api import expect

SETTINGS = "/ui/a/devstoreaccount1/settings/"
OVERVIEW = "/ui/a/devstoreaccount1/overview/"


def test_a_level_is_chosen_with_the_keyboard_and_undone(open_page, admin, tables):
    page = open_page(SETTINGS, state=admin)
    strong = page.get_by_role("radio", name="Strong")
    expect(strong).to_have_accessible_description(
        "Reads see every acknowledged write. The primary answers them."
    )
    strong.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Session")).to_be_checked()
    page.get_by_role("button", name="Save", exact=True).click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Saved the settings")
    undo = toast.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()

    other = open_page(OVERVIEW, state=admin)
    expect(other.get_by_text("Consistency: Session")).to_be_visible()
    # one below the other, as wide as their column
    attention, activity = (
        other.locator(f"section[aria-labelledby={name}]").bounding_box() for name in ("attention", "activity")
    )
    assert (attention["x"], attention["width"]) == (activity["x"], activity["width"])
    assert attention["y"] + attention["height"] < activity["y"]

    undo.click()
    expect(page.locator(".toast").last).to_contain_text("Undid the change.")
    other.reload()
    expect(other.get_by_text("Consistency: Session")).to_have_count(0)
