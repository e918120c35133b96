"""A server with a console, Chromium, and pages whose every fault fails the test."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.page import Watch
from tests.conftest import missing
from tests.live_server import start_server

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def chromium():
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        missing("Chromium is not installed, which the tests of the console need")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", *ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def console(scratch):
    """A server of its own, with the development pages."""
    with start_server(scratch / "console", env={"TABLERO_DEBUG": "1"}) as live:
        yield live


@pytest.fixture
def open_page(chromium, console):
    """`open_page("/ui/", width=320)`: that page in a context of its own; whatever fails in it fails the test."""
    watches = []
    contexts = []

    def open_it(path, *, width=1280, height=900, cookies=None, expect=200, state=None, **options):
        context = chromium.new_context(
            base_url=console.url,
            viewport={"width": width, "height": height},
            storage_state=state,
            **{"locale": "en-US", **options},
        )
        contexts.append(context)
        context.set_default_timeout(10_000)
        if cookies:
            context.add_cookies(
                [{"name": n, "value": v, "domain": "127.0.0.1", "path": "/ui/"} for n, v in cookies.items()]
            )
        page = context.new_page()
        watches.append(Watch(page, expect))
        page.goto(path)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert [fault for watch in watches for fault in watch.faults] == []


@pytest.fixture(scope="session")
def screenshots(scratch):
    """A folder for pictures of this run; kept where TEST_SCREENSHOTS says, if it does."""
    folder = Path(os.environ.get("TEST_SCREENSHOTS") or scratch / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
