"""Times of a page are in one zone: the first page shows that of the browser, and parts that come later agree."""

import pytest
from azure.data.tables import EdmType, EntityProperty
from playwright.sync_api import expect

GRID = "/ui/a/devstoreaccount1/t/zoned/"
UTC, TOKYO = "2026-01-05 09:30:00", "2026-01-05 18:30:00"


@pytest.fixture
def zoned(service):
    service.delete_table("zoned")
    with service.create_table("zoned") as table:
        for number in range(3):
            joined = EntityProperty("2026-01-05T09:30:00Z", EdmType.DATETIME)
            table.create_entity(
                {"PartitionKey": "se", "RowKey": f"{number}", "Name": "Ada", "Joined": joined}
            )
        yield table


def times(page):
    return page.locator('[data-grid] td[data-property="Joined"]')


def test_the_first_page_shows_the_zone_of_the_browser(open_page, admin, zoned):
    session = [cookie for cookie in admin["cookies"] if cookie["name"] != "tablero_zone"]
    page = open_page(GRID, state={"cookies": session}, timezone_id="Asia/Tokyo")
    expect(times(page)).to_have_text([TOKYO] * 3)
    expect(page.locator('th[data-property="Joined"]')).to_contain_text("JST")


@pytest.mark.long
def test_late_parts_use_the_time_zone_of_the_page(open_page, admin, zoned):
    page = open_page(GRID, state=admin)
    expect(times(page)).to_have_text([UTC] * 3)
    # in another tab, after a journey
    page.evaluate("document.cookie = 'tablero_zone=Europe/Istanbul; path=/ui/'")
    page.locator('td[data-property="Name"]').first.click()
    page.keyboard.type("Grace")
    page.keyboard.press("Enter")
    page.get_by_text("Name saved", exact=True).wait_for()
    page.locator('td:text-is("Grace")').wait_for()
    expect(times(page)).to_have_text([UTC] * 3)
    zoned.upsert_entity({"PartitionKey": "se", "RowKey": "1", "Name": "Hedy"}, mode="merge")  # seen live
    page.locator('td:text-is("Hedy")').wait_for()
    times(page).nth(2).dblclick()
    expect(page.locator("#cell-note")).to_contain_text("Times without an offset use UTC.")
    page.locator("#cell-value").fill("2026-01-05 09:30:00")
    page.keyboard.press("Enter")
    page.get_by_text("Joined saved", exact=True).wait_for()
    expect(times(page)).to_have_text([UTC] * 3)
    with page.expect_response(lambda answer: "t/zoned/?" in answer.url):
        page.get_by_role("button", name="Run").click()
    expect(times(page)).to_have_text([UTC] * 3)
    page.goto(GRID)  # drawn again, as the browser says that it is not in Istanbul
    expect(times(page)).to_have_text([UTC] * 3)
