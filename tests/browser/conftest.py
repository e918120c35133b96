"""A server with a console, Chromium, and pages whose every fault fails the test."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty, TableServiceClient
from playwright.sync_api import expect, sync_playwright

from tests import programs
from tests.browser.page import PATIENCE, Watch, patient
from tests.browser.pool import Pool
from tests.browser.turns import wait_for_turns
from tests.live_server import start_server
from tests.seeds import seeded

expect.set_options(timeout=PATIENCE)
wait_for_turns()
# tests wait until pages stop waiting, also on machines that are slow at times
PATIENT = {"console.site.waiting": {"PATIENCE": PATIENCE / 1000}}
# the shell draws the same pages for a third less of the processor
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="package")
def chromium():
    program = programs.require("chromium", "the console")
    # only for this package: while Playwright lives, its event loop counts as running, and no other may run here
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", *ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def console(scratch):
    """Start a separate server without users."""
    with start_server(seeded(scratch / "console"), constants=PATIENT) as live:
        yield live


@pytest.fixture(scope="module")
def service(console):
    """Open the account of the console with the SDK."""
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        yield service


@pytest.fixture(scope="package")
def pool(chromium):
    return Pool(chromium)


@pytest.fixture
def open_page(pool, console):
    """Return `open_page("/ui/", width=320)`, which opens an unused page; any error in it fails the test.

    Use `fresh` to measure a first visit, and for a frozen clock: both stay with a browser.
    """
    watches = []
    pages = []

    def open_it(path, *, cookies=None, expect=200, **options):
        given = [
            {"name": n, "value": v, "domain": "127.0.0.1", "path": "/ui/"} for n, v in (cookies or {}).items()
        ]
        page = pool.take(base_url=console.url, cookies=given, **{"locale": "en-US", **options})
        pages.append(page)
        watches.append(Watch(page, expect))
        page.goto(path)
        return page

    yield open_it
    for watch in watches:
        watch.end()
    for page in pages:
        pool.give_back(page)
    assert [fault for watch in watches for fault in watch.faults] == []


@pytest.fixture(scope="package")
def admin(chromium, console):
    """Return the cookies of the first admin, created as a user would: with the address the server printed."""
    address = next(word for line in console.output for word in line.split() if "/ui/setup/#token=" in word)
    with patient(chromium.new_context(locale="en-US")) as context:
        page = context.new_page()
        page.goto(address)
        page.get_by_label("User name").fill("ada@example.org")
        page.get_by_label("Password", exact=True).fill("a password of many words")
        page.get_by_label("Confirm password").fill("a password of many words")
        page.get_by_role("button", name="Create admin and sign in").click()
        page.wait_for_url("**/ui/")
        state = context.storage_state()
        page.close()
    return state


@pytest.fixture(scope="package")
def tables(console):
    """Make a full table with hostile values, an empty one, and one with a very long name."""
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        for name in ("people", "empty", "a" * 63):
            service.create_table(name)
        people = service.get_table_client("people")
        people.submit_transaction([("create", entity) for entity in entities()])
        people.close()


def entities():
    hostile = [
        '<img src=x onerror="alert(1)">',
        "{{ 7|add:7 }}",
        "</script><script>alert(1)</script>",
        "مرحبا بالعالم",
    ]
    for number in range(60):
        yield {
            "PartitionKey": "se",
            "RowKey": f"{number:03} %+&'\" 🦊" if number else "",
            "Name": hostile[number % 4],
            "Age": number,
            "Big": EntityProperty(2**63 - 1, EdmType.INT64),
            "Balance": -0.0 if number % 2 else float("nan"),
            "Since": datetime(2025, 3, 19, 22, 1, 55, tzinfo=UTC),
            "Active": number % 2 == 0,
            "Id": UUID(int=number),
            "Photo": b"\xde\xad" * 40,
            "Long": "x" * 32_000,
            "Score": "high" if number % 3 else number,
            **({"Empty": "", "Blank": " \t "} if number % 5 == 0 else {}),
        }
