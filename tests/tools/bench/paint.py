"""Loading times of the console's pages in a browser: part of `python3 -m tests.tools.bench.console`.

A warm visit is one of a browser that has been there: over loopback, so that it shows the time of server and
browser. A cold visit is the first one, over a line with a latency of 150 ms and 10 Mbit/s. A page is interactive
when its scripts have run.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, NamedTuple

import requests

from tests.tools.bench.rounds import progress

HEADINGS = ["page", "first byte ms", "first paint ms", "interactive ms", "KB", "requests", "nodes"]
LINE = {"offline": False, "latency": 150, "downloadThroughput": 1_250_000, "uploadThroughput": 1_250_000}
TIMES = """
async () => {
    // the first paint may come later than the load
    while (!performance.getEntriesByName("first-contentful-paint").length) await new Promise(requestAnimationFrame);
    const {responseStart, domContentLoadedEventEnd: ready} = performance.getEntriesByType("navigation")[0];
    const [{startTime: paint}] = performance.getEntriesByName("first-contentful-paint");
    return [responseStart, paint, Math.max(paint, ready), document.querySelectorAll("*").length];
}
"""


class Visit(NamedTuple):
    first_byte: float
    paint: float
    interactive: float
    kilobytes: float
    requests: float
    nodes: float


class Visited(NamedTuple):
    """A page on the first visit over a slow line, and the medians of later ones."""

    title: str
    cold: Visit
    warm: Visit


@contextmanager
def browser_of(program: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
        yield browser
        browser.close()


def context_of(browser: Any, session: requests.Session) -> Any:
    base = session.base  # type: ignore[attr-defined]
    context = browser.new_context(base_url=base, viewport={"width": 1440, "height": 900})
    context.add_cookies(
        [{"name": it.name, "value": it.value or "", "url": f"{base}/ui/"} for it in session.cookies]
    )
    return context


def visits(
    browser: Any, session: requests.Session, pages: Iterable[tuple[str, str]], count: int
) -> Iterator[Visited]:
    """Open each page, and again ``count`` times."""
    for title, address in pages:
        context = context_of(browser, session)
        page = context.new_page()
        client = context.new_cdp_session(page)
        client.send("Network.enable")
        client.send("Network.emulateNetworkConditions", LINE)
        cold = visit(page, client, address)
        client.send("Network.emulateNetworkConditions", {**LINE, "latency": 0, "downloadThroughput": -1})
        visit(page, client, address)
        warm = [visit(page, client, address) for _ in range(count)]
        context.close()
        progress(title)
        yield Visited(title, cold, Visit(*(median(values) for values in zip(*warm, strict=True))))


def visit(page: Any, client: Any, address: str) -> Visit:
    loaded: list[float] = []
    hear = lambda it: loaded.append(it["encodedDataLength"])  # noqa: E731
    client.on("Network.loadingFinished", hear)
    page.goto("about:blank")
    loaded.clear()
    page.goto(address, wait_until="load")
    first_byte, paint, interactive, nodes = page.evaluate(TIMES)
    page.wait_for_timeout(300)  # requests that the page sends by itself
    client.remove_listener("Network.loadingFinished", hear)
    sent = [size for size in loaded if size]  # responses from the cache have no size
    return Visit(first_byte, paint, interactive, sum(sent) / 1024, len(sent), nodes)


def follow(page: Any, tab: str) -> float:
    """Milliseconds from the click on a tab of a table until its page can be seen."""
    taken: float = page.evaluate(
        """tab => new Promise(done => {
            const link = [...document.querySelectorAll(".table-frame a")].find(it => it.textContent.trim() === tab);
            const main = document.getElementById("main");
            const from = performance.now();
            const look = () => document.getElementById("main") === main
                ? requestAnimationFrame(look) : requestAnimationFrame(() => done(performance.now() - from));
            link.click();
            look();
        })""",
        tab,
    )
    page.wait_for_timeout(200)  # later events
    return taken


def row(title: str, measured: Visit) -> list[str]:
    return [title, *(f"{number:.0f}" for number in measured)]
