"""Response times of the console's pages, against their budgets: `python3 -m tests.tools.bench.console`.

Server times are what a client waits for an answer on loopback, one at a time; CPU is that of the server and its
PostgreSQL for each answer, which other programs do not lengthen. With Chromium on the machine, pages are opened in it,
for the first time over a slow line and again; and the grid is used: what an arrow key, an editor, a page that is
swapped in, and another page of the table take in the browser.
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any
from urllib.parse import quote

import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from tests import forked, programs
from tests.first_sign_in import sign_in_first
from tests.tools.bench import paint, report, rounds, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.rounds import Contender, progress
from tests.tools.bench.servers import Server, scratch_folder

BUDGET = 150  # milliseconds, of the server for a page of the grid
USER = "bench"
ARROW = """
async () => {
    const cell = document.querySelector('[data-grid] tbody td[tabindex="0"], [data-grid] tbody td:nth-child(3)');
    cell.focus();
    const taken = [];
    for (let turn = 0; turn < 40; turn++) {
        const from = performance.now();
        const key = turn % 2 ? "ArrowUp" : "ArrowDown";
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
        document.activeElement.getBoundingClientRect();
        taken.push(performance.now() - from);
    }
    return taken;
}
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.console", description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="entities in the table, default 1000000")
    parser.add_argument("--requests", type=int, default=100, help="of each page, default 100")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages whose titles have this")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, ExitStack() as stack:
        server = stack.enter_context(servers.tablero(folder))
        contender = rounds.enter(server, Dataset(options.size))
        widen(server)
        progress("loaded")
        session = sign_in(server, folder)
        rows = [
            measured(server, session, title, address, options.requests)
            for title, address in pages(contender)
            if options.only in title
        ]
        lines = report.table(["page", "p50 ms", "p95 ms", "CPU ms", "KB", "budget ms"], rows)
        if chromium := programs.find("chromium"):
            with paint.browser_of(chromium) as browser:
                opened = [it for it in shown(contender) if options.only in it[0]]
                seen = list(paint.visits(browser, session, opened, min(options.requests, 10)))
                used = browse(browser, contender, session, options.requests)
            lines += [
                "",
                *report.table(
                    paint.HEADINGS, [paint.row(f"{it.title}, first visit", it.cold) for it in seen]
                ),
            ]
            lines += ["", *report.table(paint.HEADINGS, [paint.row(it.title, it.warm) for it in seen])]
            lines += ["", *report.table(["in Chromium", "p50 ms", "p95 ms", "budget ms"], used)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def widen(server: Server) -> None:
    """Make a table whose rows have the greatest number of properties."""
    credential = AzureNamedKeyCredential("devstoreaccount1", server.key)
    with TableServiceClient(server.endpoint, credential=credential) as service:
        table = service.create_table("wide")
        wide = {f"Property{number:03}": number * 1.5 for number in range(252)}
        table.submit_transaction(
            [("upsert", {"PartitionKey": "p", "RowKey": f"{n:03}", **wide}) for n in range(50)]
        )


def pages(contender: Contender) -> Iterator[tuple[str, str]]:
    account, data = "/ui/a/devstoreaccount1/", contender.site.data
    table = f"{account}t/{contender.site.table}/"
    number = data.size // 3
    partition, row = data.key(number)
    _, end = data.key(number + 1000)
    point = quote(f"PartitionKey eq '{partition}' and RowKey eq '{row}'")
    stretch = quote(f"PartitionKey eq '{partition}' and RowKey ge '{row}' and RowKey lt '{end}'")
    owner = quote(f"Owner eq '{data.owner(number)}'")
    yield "grid, a point", f"{table}?f={point}"
    yield "grid, a range, 50 rows", f"{table}?f={stretch}"
    yield "grid, a range, 200 rows", f"{table}?top=200&f={stretch}"
    yield "grid, the first page", table
    yield "grid, an equality", f"{table}?f={owner}"
    yield "grid, 50 rows of 252 properties", f"{account}t/wide/"
    yield "entity", f"{table}entity/?pk={partition}&rk={row}"
    yield "tables", account
    yield "home", "/ui/"
    yield "activity", f"{account}activity/"


def shown(contender: Contender) -> Iterator[tuple[str, str]]:
    """Yield the pages that are opened in a browser."""
    results = dict(pages(contender))
    table = results["grid, the first page"]
    for title in ("grid, the first page", "entity"):
        yield title, results[title]
    yield "history of the table", f"{table}history/"
    yield "schema", f"{table}schema/"
    for title in ("activity", "tables", "home"):
        yield title, results[title]


def sign_in(server: Server, folder: Path, user: str = USER) -> requests.Session:
    status, told, errors = forked.run_command(folder / "tablero", "user", "add", user, "--admin")
    assert status == 0, errors
    base = server.endpoint.rpartition("/")[0]
    session, _chosen = sign_in_first(base, user, told.partition("password=")[2].strip())
    session.base = base  # type: ignore[attr-defined]
    return session


def measured(server: Server, session: requests.Session, title: str, address: str, count: int) -> list[str]:
    url = f"{session.base}{address}"  # type: ignore[attr-defined]
    for _ in range(3):  # the first ones find nothing ready
        session.get(url)
    times, size, used = [], 0, server.cpu_seconds()
    for _ in range(count):
        began = perf_counter()
        answer = session.get(url)
        times.append((perf_counter() - began) * 1000)
        if answer.status_code != 200:
            raise rounds.WrongAnswerError(f"{title}: {answer.status_code}")
        size = len(answer.content)
    numbers = (
        median(times),
        quantiles(times, n=20)[-1],
        (server.cpu_seconds() - used) * 1000 / count,
        size / 1024,
    )
    progress(title)
    budget = str(BUDGET) if title.startswith("grid") else ""
    return [title, *(f"{number:.0f}" for number in numbers), budget]


def browse(browser: Any, contender: Contender, session: requests.Session, count: int) -> list[list[str]]:
    context = paint.context_of(browser, session)
    page = context.new_page()
    page.goto(f"/ui/a/devstoreaccount1/t/{contender.site.table}/")
    page.locator("[data-grid] [tabindex='0']").first.wait_for()
    turns = range(min(count, 20))
    used = {
        "arrow key in the grid": (page.evaluate(ARROW), 100),
        "next or previous page swapped in": (
            [turn(page, "previous" if number % 2 else "next") for number in turns],
            300,
        ),
        "F2 until the editor is there": ([edit(page) for _ in turns], 150),
        "schema, or the grid, in the same document": (
            [paint.follow(page, "Entities" if number % 2 else "Schema") for number in turns],
            300,
        ),
    }
    context.close()
    return [
        [title, f"{median(times):.1f}", f"{quantiles(times, n=20)[-1]:.1f}", str(budget)]
        for title, (times, budget) in used.items()
    ]


def turn(page, which: str) -> float:  # type: ignore[no-untyped-def]
    """Milliseconds from the click until the other rows are there."""
    key = page.locator("tr[data-key]").first.get_attribute("data-key")
    return page.evaluate(
        """([which, key]) => new Promise(done => {
            const from = performance.now();
            const look = () => document.querySelector("tr[data-key]")?.dataset.key === key
                ? requestAnimationFrame(look) : done(performance.now() - from);
            document.querySelector(`.pager [data-${which}]`).click();
            look();
        })""",
        [which, key],
    )


def edit(page) -> float:  # type: ignore[no-untyped-def]
    """Milliseconds from the key until a cell can be edited; the editor is closed again."""
    page.locator("tr[data-key] td[data-property]").nth(4).click()
    taken: float = page.evaluate(
        """() => new Promise(done => {
            const from = performance.now();
            const look = () => document.querySelector("dialog #cell-editor")
                ? done(performance.now() - from) : requestAnimationFrame(look);
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "F2", bubbles: true}));
            look();
        })"""
    )
    page.keyboard.press("Escape")
    return taken


if __name__ == "__main__":
    sys.exit(main())
