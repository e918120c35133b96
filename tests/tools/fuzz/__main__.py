"""Send requests from nearly valid to absurd through every door, and check each answer.

python3 -m tests.tools.fuzz --requests 1000000 --seed 3

None may be answered with 500, hang, change what it was not sent to, leave an exception in the log, or be answered in
another form than that of its door: the Table service in JSON, Atom, XML and multipart, shared access signatures, the
management API, pages and forms of the console. It ends with status 1 if one is, and prints the requests. Ctrl-C ends it
earlier, with the same report.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import requests

from tests.faults.connection import Connection
from tests.live_server import LiveServer, start_server
from tests.tools.bench.console import sign_in
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import scratch_folder
from tests.tools.fuzz import documents, pages, protocol
from tests.tools.fuzz.answers import check_api_answer, check_page_answer
from tests.tools.fuzz.world import Check, Requests, World
from tests.tools.promises import ledger

ROUND = 400  # requests of each kind
ROUND_OF_CONSOLE = 100  # its pages take the server ten times as long
TABLE_SERVICE: dict[str, Requests] = {
    "paths": protocol.wild_paths(),
    "queries": protocol.wild_queries(),
    "headers": protocol.wild_headers(),
    "JSON": protocol.wild_bodies(),
    "multipart": protocol.wild_batches(),
    "signatures": protocol.wild_signatures(),
    "SAS": documents.wild_sas(),
    "XML": documents.wild_xml(),
    "Atom": documents.wild_atom(),
}
STARTS = [  # below the account
    "", "t/fuzz/", "t/fuzz/?f=n%20eq%201", "t/fuzz/entity/new/", "t/fuzz/entity/?pk=p&rk=1", "t/fuzz/settings/",
    "t/fuzz/policies/", "sas/new/", "sas/", "activity/", "snapshots/", "queries/", "settings/", "service/",
    "members/",
    "overview/", "keys/",
]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    sent: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    failures: list[str] = []
    began = time.monotonic()
    with (
        suppress(KeyboardInterrupt),
        scratch_folder() as folder,
        start_server(folder / "tablero") as server,
        Connection(server) as connection,
        Connection(server) as observer,
    ):
        world = World(connection, observer)
        doors = {**{name: (it, None) for name, it in TABLE_SERVICE.items()}, **console_doors(server, folder)}
        doors = {name: it for name, it in doors.items() if name in options.doors or not options.doors}
        chance = options.seed * 1_000_003
        while sum(sent.values()) < options.requests and not failures:
            for name, (strategy, check) in doors.items():
                before, chance = world.sent, chance + 1
                number = ROUND if name in TABLE_SERVICE else ROUND_OF_CONSOLE
                try:
                    world.feed(strategy, min(number, options.requests), check, chance)
                except Exception as error:
                    failures.append(f"{name}: {type(error).__name__}: {error}"[-2000:])
                sent[name] += world.sent - before
                failures += [f"{name}: {it}" for it in world.failures]
                world.failures.clear()
            codes, world.codes = codes + world.codes, Counter()
            progress(
                f"{sum(sent.values()):,} requests, {len(failures)} failures, {time.monotonic() - began:.0f} s"
            )
        logged = [place for place, line in enumerate(server.output) if "Traceback" in line]
        failures += ["\n".join(server.output[max(place - 3, 0) : place + 90]) for place in logged]
    seconds = time.monotonic() - began
    sys.stdout.write(report(sent, codes, failures, seconds))
    if options.record and not options.doors:
        figures = {"requests": sum(sent.values()), "failures": len(failures), "mended": 0}
        ledger.record(ledger.Run("wrong", seconds, figures, options.seed))
    return 1 if failures else 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.tools.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=50_000, help="at least, default 50000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--doors", nargs="*", default=[], help=f"{', '.join(TABLE_SERVICE)}, API, pages, forms; default all"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the figures for docs/reliability.md, if all doors were opened",
    )
    return parser.parse_args(arguments)


def console_doors(server: LiveServer, folder: Path) -> dict[str, tuple[Requests, Check]]:
    """Return the API and the pages of a separate account, so that others are not disturbed."""
    session = sign_in(server, folder, "fuzz")
    token = server.add_token("fuzz", "fuzz")
    api = f"{server.url}/ui/api/v1"
    headers = {"Authorization": f"Bearer {token}"}
    for path, body in (
        ("accounts", {"name": pages.FUZZED}),
        (f"accounts/{pages.FUZZED}/tables", {"name": "fuzz"}),
    ):
        requests.post(f"{api}/{path}", json=body, headers=headers, timeout=60).raise_for_status()
    schema = requests.get(
        f"{api}/schema?format=json", headers={**headers, "Accept": "application/json"}, timeout=60
    )
    operations = pages.read_operations(json.loads(schema.text))
    starts = ["/ui/", *(f"/ui/a/{pages.FUZZED}/{it}" for it in STARTS)]
    crawled, forms = pages.crawl(lambda address: session.get(server.url + address, timeout=60).text, starts)
    cookies = "; ".join(f"{it.name}={it.value}" for it in session.cookies).encode()
    csrf = next(it.value or "" for it in session.cookies if "csrf" in it.name)
    progress(f"{len(operations)} operations of the API, {len(crawled)} pages, {len(forms)} forms")
    return {
        "API": (pages.wild_calls(operations, token), check_api_answer),
        "pages": (pages.wild_pages(crawled, cookies), check_page_answer),
        "forms": (pages.wild_forms(forms, cookies, csrf), check_page_answer),
    }


def report(sent: Counter[str], codes: Counter[str], failures: Sequence[str], seconds: float) -> str:
    lines = [f"{sum(sent.values()):,} requests in {seconds:.0f} s, {len(failures)} failures", ""]
    lines += [f"{number:9,}  {name}" for name, number in sent.items()]
    lines += ["", *(f"{number:9,}  {code}" for code, number in codes.most_common(40))]
    return "\n".join([*lines, "", *failures[:20]]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
