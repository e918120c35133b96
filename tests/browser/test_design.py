"""The design of a table in a browser: from a slow query to the second copies that serve it."""

import pytest
from playwright.sync_api import expect

from tests.browser.page import check, check_on_a_phone

pytestmark = pytest.mark.long
TABLE = "/ui/a/devstoreaccount1/t/receipts/"


@pytest.fixture
def receipts(service):
    """Make entities of two kinds in one partition, with numbers that are not padded, and query them."""
    table = service.create_table_if_not_exists("receipts")
    for start in range(0, 1_200, 100):
        entities = [
            {"PartitionKey": "shop", "RowKey": f"receipt-{number}"}
            | (
                {"Head": "Zoë <b>", "Budget": number}
                if number % 3 == 0
                else {"Email": f"{number % 40}@example.org", "Total": number, "Paid": True}
            )
            for number in range(start, start + 100)
        ]
        table.submit_transaction([("upsert", it) for it in entities])
    yield table
    for name in ("receipts", "receiptsByEmail"):
        service.delete_table(name)


def test_from_a_slow_query_to_its_second_copies(open_page, admin, receipts):
    page = open_page(f"{TABLE}?f=Email+eq+'7@example.org'", state=admin)
    clicks = [
        page.get_by_role("button", name="Table scan: explanation"),
        page.get_by_role("link", name="What would serve this query"),
        page.locator("#design").get_by_role("link", name="Make second copies…").first,
        page.get_by_role("button", name="Write 800 copies"),
    ]
    for click in clicks[:2]:
        click.click()
    asked = page.get_by_role("region", name="Your query")
    expect(asked).to_contain_text("Second copy in another table")
    expect(asked).to_contain_text("Up to 1,200 entities for one query.")
    clicks[2].click()
    expect(page.locator("#operation-0-op")).to_have_value("second-copy")
    expect(page.locator("#operation-0-table")).to_have_value("receiptsByEmail")
    expect(page.locator("#bulk-preview")).to_contain_text("800 will be copied")
    clicks[3].click()
    expect(page.locator("main")).to_contain_text("finished")
    expect(page.get_by_role("definition").first).to_have_text("800")
    assert len(clicks) <= 6


def test_the_page_on_a_desk_and_on_a_phone(open_page, admin, receipts):
    page = open_page(f"{TABLE}design/", state=admin)
    expect(page.get_by_role("region", name="Findings")).to_contain_text("One partition")
    check(page)
    check_on_a_phone(page)
    page.get_by_role("link", name="receipt-", exact=False).first.click()
    expect(page.locator("[data-grid] tbody tr")).to_have_count(1)
