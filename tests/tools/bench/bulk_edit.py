"""Cost of bulk edits: `python3 -m tests.tools.bench.bulk_edit`, a minute.

Entities of 1 KB are edited by the management API of a server with durable defaults, each edit first as a dry run.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from tests.tools.bench import rounds, servers
from tests.tools.bench.entities import Dataset
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import ROOT, Server, scratch_folder

ACCOUNT = "devstoreaccount1"
EDITS: Mapping[str, Sequence[Mapping[str, str | bool]]] = {
    "set and compute": (
        {"op": "set", "property": "Status", "expression": "'refunded'"},
        {"op": "set", "property": "Score", "expression": "round(Score * 1.2, 2)"},
    ),
    "rename and convert": (
        {"op": "rename", "property": "Visits", "to": "Hits"},
        {"op": "convert", "property": "Hits", "type": "String"},
    ),
    "change keys": ({"op": "key", "row_key": "concat('n', RowKey)"},),
    "second copies": ({"op": "second-copy", "table": "copies"},),
    "repair of copies in step": (
        {"op": "second-copy", "table": "copies", "replace": True, "delete_left_over": True},
    ),
    "delete": ({"op": "delete"},),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.bulk_edit", description=__doc__)
    parser.add_argument("--size", type=int, default=20_000, help="entities of the table, default 20000")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder, servers.tablero(folder) as server:
        report(server, folder / "tablero", options.size)
    return 0


def report(server: Server, data: Path, size: int) -> None:
    """Print the table, of as many entities; ``data``: the data folder of the server."""
    table = rounds.create(server)
    rounds.load(server, table, Dataset(size))
    progress("loaded")
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token(data)}"
    sys.stdout.write(
        "| edit | dry run, entities/s | run, entities/s | CPU of the run in µs an entity |\n|---|---|---|---|\n"
    )
    for name, operations in EDITS.items():
        body = {"operations": operations, "number": size}
        foreseen, _ = ask(server, session, table, {**body, "dry_run": True})
        seconds, cpu = ask(server, session, table, body)
        speeds = (f"{size / it:,.0f}" for it in (foreseen, seconds))
        sys.stdout.write(f"| {name} | {' | '.join(speeds)} | {cpu / size * 1e6:.0f} |\n")
        sys.stdout.flush()
    rounds.drop(server, table)


def token(data: Path) -> str:
    def manage(*command: str) -> str:
        line = [sys.executable, "manage.py", *command, "--data", str(data)]
        return subprocess.run(line, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    manage("user", "add", "bench", "--admin")
    return manage("token", "add", "bench", "bulk-edit", "--scope", "manage")


def ask(
    server: Server, session: requests.Session, table: str, body: Mapping[str, Any]
) -> tuple[float, float]:
    """Return the seconds, and those of CPU in all processes of the server, of an edit of all entities."""
    address = urlsplit(server.endpoint)
    url = f"{address.scheme}://{address.netloc}/ui/api/v1/accounts/{ACCOUNT}/tables/{table}/bulk-edit"
    began, cpu = time.perf_counter(), server.cpu_seconds()
    answer = session.post(url, json=body, timeout=600)
    spent = time.perf_counter() - began, server.cpu_seconds() - cpu
    answer.raise_for_status()
    done = answer.json()
    if sum(done[name] for name in ("changed", "moved", "deleted", "copied", "unchanged")) != body["number"]:
        raise rounds.WrongAnswerError(answer.text)
    return spent


if __name__ == "__main__":
    sys.exit(main())
