"""How long the console's pages take, against their budgets: `python3 -m tests.bench.console`.

Server times are what a client waits for an answer on loopback, one at a time; CPU is that of the server and its
PostgreSQL for each answer, which other programs do not lengthen. With Chromium on the machine the grid is
used too: what an arrow key, and a page that is swapped in, take in the browser.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from urllib.parse import quote

import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from tests.bench import report, rounds, servers
from tests.bench.entities import Dataset
from tests.bench.rounds import Contender, progress
from tests.bench.servers import ROOT, Server, scratch_folder

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
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench.console", description=__doc__)
    parser.add_argument("--size", type=int, default=1_000_000, help="entities in the table, default 1000000")
    parser.add_argument("--requests", type=int, default=100, help="of each page, default 100")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, ExitStack() as stack:
        server = stack.enter_context(servers.tablero(folder))
        contender = rounds.enter(server, Dataset(options.size))
        widen(server)
        progress("loaded")
        session = sign_in(server, folder)
        rows = [
            measured(server, session, title, address, options.requests) for title, address in pages(contender)
        ]
        lines = report.table(["page", "p50 ms", "p95 ms", "CPU ms", "KB", "budget ms"], rows)
        if chromium := shutil.which("chromium"):
            lines += [
                "",
                *report.table(
                    ["in Chromium", "p50 ms", "p95 ms", "budget ms"],
                    browse(chromium, contender, session, options.requests),
                ),
            ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def widen(server: Server) -> None:
    """A table whose rows have as many properties as rows may have."""
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


def sign_in(server: Server, folder: Path, user: str = USER) -> requests.Session:
    command = [sys.executable, "manage.py", "user", "--data", str(folder / "tablero"), "add", user, "--admin"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    password = told.partition("password=")[2].strip()
    session = requests.Session()
    base = server.endpoint.rpartition("/")[0]
    session.headers["Accept-Language"] = "en"
    page = session.get(f"{base}/ui/login/").text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None
    form = {"csrfmiddlewaretoken": token[1], "login": user, "password": password}
    answer = session.post(f"{base}/ui/login/", form, headers={"Referer": f"{base}/ui/login/"})
    assert answer.url.endswith("/ui/"), answer.url
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


def browse(program: str, contender: Contender, session: requests.Session, count: int) -> list[list[str]]:
    with grid(program, contender, session) as page:
        arrows = page.evaluate(ARROW)
        swaps = [turn(page, "next" if number % 2 == 0 else "previous") for number in range(min(count, 20))]
    return [
        ["arrow key in the grid", f"{median(arrows):.1f}", f"{quantiles(arrows, n=20)[-1]:.1f}", "100"],
        [
            "next or previous page swapped in",
            f"{median(swaps):.0f}",
            f"{quantiles(swaps, n=20)[-1]:.0f}",
            "300",
        ],
    ]


@contextmanager
def grid(program: str, contender: Contender, session: requests.Session):  # type: ignore[no-untyped-def]
    from playwright.sync_api import sync_playwright

    base = session.base  # type: ignore[attr-defined]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
        context = browser.new_context(base_url=base, viewport={"width": 1440, "height": 900})
        context.add_cookies(
            [{"name": it.name, "value": it.value or "", "url": f"{base}/ui/"} for it in session.cookies]
        )
        page = context.new_page()
        page.goto(f"/ui/a/devstoreaccount1/t/{contender.site.table}/")
        page.locator("[data-grid] [tabindex='0']").first.wait_for()
        yield page
        browser.close()


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


if __name__ == "__main__":
    sys.exit(main())
