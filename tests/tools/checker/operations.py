"""Long operations in a table of their own, in which a process is killed while clients work in another table.

Each must be completed or taken back, as docs/operations.md promises under "Interrupted operations".
"""

import json
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import requests

from tests.commands import command
from tests.live_server import ACCOUNT, clean_environment
from tests.tools.checker.clients import PATIENCE
from tests.tools.checker.feed import read_change
from tests.tools.checker.history import Restored
from tests.tools.checker.levels import Violation
from tests.tools.checker.site import (
    FIRST,
    KILLS,
    Fault,
    Site,
    happens,
    kill_everything,
    kill_the_server,
)
from tests.waiting import wait_for

Rows = Counter[tuple[str, int]]  # how often a table has each RowKey and number

ROWS = 1000
LONGEST = 2.5  # seconds before the kill; an operation that has ended before is counted
COMMAND_KILLS = 3  # how often the command itself is killed, for one kill of each other kind
OLDER = "0057_requests_counted_once"  # later migrations hold no data of clients
WHOLE = "long operations are whole"
ASYNC = {"Prefer": "respond-async"}
TABLE = f"accounts/{ACCOUNT}/tables"


class Workbench:
    """Requests to the management API that change something."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._url = f"http://127.0.0.1:{site.endpoints()[0].port}/ui/api/v1/"

    def send(self, method: str, path: str, content: Any = None, **headers: str) -> requests.Response:
        """Send a request that is safe to repeat until it is answered."""
        return wait_for(lambda: self._try(method, path, content, headers), f"{method} {path}")

    def _try(self, method: str, path: str, content: Any, headers: dict[str, str]) -> requests.Response | None:
        """Return None for a failure that passes."""
        body = {"data" if isinstance(content, bytes) else "json": content}
        fields = {"Authorization": f"Bearer {self._site.token}", **headers}
        try:
            answer = requests.request(method, self._url + path, headers=fields, timeout=PATIENCE, **body)
        except requests.RequestException:
            return None
        if answer.status_code in (500, 503) or "Retry-After" in answer.headers:
            return None
        is_gone = method == "DELETE" and answer.status_code == 404
        assert answer.ok or is_gone, (method, path, answer.text)
        return answer

    def start(self, path: str, content: Any) -> int:
        """Start a job by a request that would start another one if it was repeated."""
        latest = self._latest_job()
        while (answer := self._try("POST", path, content, ASYNC)) is None:
            time.sleep(0.5)  # the database may still be ending what the lost request has sent
            if (job := self._latest_job()) != latest:
                return job
        return int(answer.json()["id"])

    def _latest_job(self) -> int:
        return max((int(it["id"]) for it in self.send("GET", "jobs").json()["items"]), default=0)

    def end(self, job: int) -> None:
        """Wait for the end of a job, which must succeed."""
        result = wait_for(lambda: self._find_ended(job), f"the end of job {job}")
        if result["status"] != "done":
            self._site.violations.append(Violation("long operations end", str(result)))

    def _find_ended(self, job: int) -> Any:
        result = self.send("GET", f"jobs/{job}").json()
        return result if result["ended_at"] else None

    def run(self, path: str, content: Any) -> None:
        self.end(self.start(path, content))

    def fill(self, table: str) -> Rows:
        """Import rows into a new table, and return them."""
        numbers = range(ROWS)
        lines = ["PartitionKey,RowKey,n", *(f"p{it // 100},{it:05},{it}" for it in numbers)]
        headers = {**ASYNC, "Idempotency-Key": uuid4().hex}
        content = "\n".join(lines).encode()
        answer = self.send("POST", f"{TABLE}/{table}/import?create=true", content, **headers)
        self.end(int(answer.json()["id"]))
        return Counter((f"{it:05}", it) for it in numbers)

    def check(self, expected: Rows, table: str, *, account: str = ACCOUNT) -> None:
        """Check the rows of a table, and drop it."""
        path = f"accounts/{account}/tables/{table}"
        text = self.send("GET", f"{path}/export?format=ndjson").text
        rows = Counter((it["RowKey"], it["n"]) for it in map(json.loads, text.splitlines()))
        if rows != expected:
            what = (
                f"{account}/{table} lacks {len(expected - rows)} rows, and has {len(rows - expected)} others"
            )
            self._site.violations.append(Violation(WHOLE, what))
        self.send("DELETE", path)


def new_name() -> str:
    return f"long{uuid4().hex[:16]}"


@contextmanager
def killed(site: Site, dice: Random, command: "Command | None" = None) -> Iterator[None]:
    """Kill a process at a random moment of the block, perhaps that of the command, and start the servers again."""
    ended: list[float] = []
    faults = KILLS if command is None else (*KILLS, *([command.kill] * COMMAND_KILLS))

    def kill() -> None:
        time.sleep(LONGEST * dice.random())
        if ended:
            site.late_kills += 1
        while not happens(dice.choice(faults), site, dice):
            pass

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(kill)
        yield
        ended.append(time.monotonic())
        done.result()


class Command:
    """A command of manage.py that runs."""

    def __init__(self, *arguments: str | Path, **environment: str) -> None:
        self._arguments = arguments
        self._environment = {**clean_environment(), **environment}
        self.output = ""
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(*self._arguments),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill(self, site: Site, dice: Random) -> None:
        self._process.kill()

    def wait(self) -> bool:
        """Return whether it succeeded."""
        self.output, _ = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode == 0

    def wait_or_repeat(self) -> None:
        """Wait until it has succeeded, the first time or when it is repeated."""
        wait_for(self._has_succeeded, f"the command {self._arguments}")

    def _has_succeeded(self) -> bool:
        if self.wait():
            return True
        self._process = self._start()
        return False


def kill_during_import(site: Site, dice: Random) -> None:
    bench, table = Workbench(site), new_name()
    with killed(site, dice):
        rows = bench.fill(table)
    bench.check(rows, table)


def kill_during_bulk_edit(site: Site, dice: Random) -> None:
    """Kill an edit that has another effect when it is done twice."""
    bench, table = Workbench(site), new_name()
    rows = bench.fill(table)
    with killed(site, dice):
        bench.run(f"{TABLE}/{table}/bulk-edit", edit("n + 1"))
    bench.check(Counter((key, number + 1) for key, number in rows), table)


def edit(expression: str) -> dict[str, Any]:
    return {"operations": [{"op": "set", "property": "n", "expression": expression}]}


def kill_during_copy(site: Site, dice: Random) -> None:
    """Kill the copy of a table, of the account, or a branch of it."""
    bench, table, name = Workbench(site), new_name(), new_name()
    rows = bench.fill(table)
    match dice.choice(("table", "copy", "branches")):
        case "table":
            with killed(site, dice):
                bench.run(f"{TABLE}/{table}/copy", {"name": name})
            bench.check(rows, name)
        case path:
            with killed(site, dice):
                bench.send("POST", f"accounts/{ACCOUNT}/{path}", {"name": name})
            bench.check(rows, table, account=name)
            bench.send("DELETE", f"accounts/{name}?with_tables=true")
    bench.check(rows, table)


def kill_during_restore(site: Site, dice: Random) -> None:
    """Kill the restore of a snapshot, or of the whole database beside it."""
    if dice.random() < 0.5:
        restore_a_snapshot(site, dice)
    else:
        restore_beside(site, dice)


def restore_beside(site: Site, dice: Random) -> None:
    """Kill the restore of the archive into another folder, which must have all changes so far."""
    began = time.monotonic()
    restore = Command("restore", "--to", "latest", "--data", site.data)
    with killed(site, dice, restore):
        restore.wait_or_repeat()
    folders = [it for it in site.data.parent.iterdir() if it.name.startswith(f"{site.data.name}.")]
    [folder] = [it for it in folders if it.suffix == ".restored"]
    if len(folders) > 1:
        site.violations.append(Violation(WHOLE, f"{folders} remain beside the restored folder"))
    changes = Command("changes", f"{ACCOUNT}/{site.table}", "--json", "--from", "oldest", "--data", folder)
    assert changes.wait(), changes.output
    site.restored.append(Restored(began, [read_change(json.loads(it)) for it in changes.output.splitlines()]))
    shutil.rmtree(folder)


def restore_a_snapshot(site: Site, dice: Random) -> None:
    """Kill the restore of a snapshot in which each row has changed since."""
    bench, table, name = Workbench(site), new_name(), new_name()
    rows = bench.fill(table)
    snapshots = f"accounts/{ACCOUNT}/snapshots"
    bench.send("POST", snapshots, {"name": name, "tables": [table]})
    bench.run(f"{TABLE}/{table}/bulk-edit", edit("0 - n"))
    with killed(site, dice):
        bench.run(f"{snapshots}/{name}/restore", {"tables": [table]})
    bench.check(rows, table)
    for snapshot in bench.send("GET", snapshots).json()["items"]:
        bench.send("DELETE", f"{snapshots}/{snapshot['name']}")


def kill_during_backup(site: Site, dice: Random) -> None:
    """Kill a backup; the last one must be complete, with nothing beside it of one that was killed."""
    folder = site.folder / "backups"
    backup = Command("backup", folder, "--data", site.data)
    with killed(site, dice, backup):
        is_made = backup.wait()
    if not is_made:
        again = Command("backup", folder, "--data", site.data)
        again.wait_or_repeat()
    if parts := [it.name for it in folder.glob(".*.part")]:
        site.violations.append(Violation(WHOLE, f"the backup left {parts}"))
    test = Command("backup", "--test", folder, "--data", site.data)
    if not test.wait():
        site.violations.append(Violation(WHOLE, test.output))
    shutil.rmtree(folder)


def kill_during_upgrade(site: Site, dice: Random) -> None:
    """Stop all servers, give the database back to an older version, and kill the first start of this one."""
    for number in range(len(site.servers)):
        site.end(number)
    back = Command("migrate", "storage", OLDER, "--data", site.data, TABLERO_DEBUG="on")
    assert back.wait(), back.output
    site.start(FIRST, wait=False)
    time.sleep(2 * LONGEST * dice.random())
    site.late_kills += site.first.is_ready.is_set()
    happens(dice.choice((kill_everything, kill_the_server)), site, dice)
    for number in range(1, len(site.servers)):
        site.start(number)


DURING: tuple[Fault, ...] = (
    kill_during_import,
    kill_during_bulk_edit,
    kill_during_copy,
    kill_during_restore,
    kill_during_backup,
    kill_during_upgrade,
)
