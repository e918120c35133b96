"""The clients of a soak: each thread repeats what its kind does until the end."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random

import requests

from tests.faults.connection import Change, Connection
from tests.live_server import ROOT, LiveServer, clean_environment
from tests.tools.soak.figures import Latencies

TABLE = "soak"
PARTITIONS, ROWS = 20, 200
KEPT = 3  # backups
STREAMED = 30.0  # seconds of a stream
PATIENCE = 60.0  # seconds of a request; and of threads that end
EXPECTED = {"EntityAlreadyExists", "ResourceNotFound", "UpdateConditionNotSatisfied"}
PAGES = (
    "/ui/",
    "/ui/a/{account}/",
    "/ui/a/{account}/t/soak/",
    "/ui/a/{account}/t/soak/?f=PartitionKey%20eq%20'p3'",
    "/ui/a/{account}/t/soak/?f=n%20gt%20500000",
    "/ui/a/{account}/t/soak/?top=200&f=PartitionKey%20eq%20'p5'",
    "/ui/a/{account}/t/soak/entity/new/",
    "/ui/a/{account}/t/soak/schema/",
    "/ui/a/{account}/t/soak/export/?format=csv&f=PartitionKey%20eq%20'p1'",
    "/ui/a/{account}/activity/",
    "/ui/a/{account}/t/soak/history/",
    "/ui/a/{account}/snapshots/",
    "/ui/a/{account}/sas/",
    "/ui/a/{account}/queries/",
)
CALLS = (
    "accounts",
    "accounts/{account}/tables",
    "accounts/{account}/tables/soak",
    "accounts/{account}/tables/soak/history?pk=p1&rk=r1&limit=20",
    "accounts/{account}/changes?from=now",
    "accounts/{account}/snapshots",
    "accounts/{account}/activity?limit=20",
    "accounts/{account}/service-properties",
    "backup",
)


class Load:
    """Clients of one server; each request is timed by its kind, each that fails is counted."""

    def __init__(self, server: LiveServer, folder: Path, token: str, latencies: Latencies) -> None:
        self._server = server
        self._folder = folder
        self._latencies = latencies
        self._stop = threading.Event()
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._base = f"{server.url}/ui/api/v1/"
        self._account = f"accounts/{server.account}"

    @contextmanager
    def running(self, console: requests.Session) -> Iterator[None]:
        with Connection(self._server) as connection:
            connection.create_table(TABLE)
        kinds: list[Callable[[], None]] = [
            *[self._protocol] * 4,
            lambda: self._console(console),
            self._call_api,
            *[self._stream] * 3,
            self._job,
        ]
        threads = [threading.Thread(target=kind) for kind in kinds]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(2 * PATIENCE)
        assert not any(thread.is_alive() for thread in threads), "a client hangs"

    def _repeat(self, kind: str, turn: Callable[[int], str], pause: float) -> None:
        """``turn`` returns what was timed, if anything; all that it raises is an error of the server."""
        for number in count():
            if self._stop.is_set():
                return
            began = time.monotonic()
            try:
                if name := turn(number):
                    self._latencies.add(name, time.monotonic() - began)
            except Exception as error:
                self._latencies.fail(kind, f"{type(error).__name__}: {error}")
                self._stop.wait(1.0)
            self._stop.wait(pause)

    def _protocol(self) -> None:
        dice = Random()
        with Connection(self._server, timeout=PATIENCE) as connection:
            self._repeat("protocol", lambda _: self._ask_entity(connection, dice), 0.01)

    def _ask_entity(self, connection: Connection, dice: Random) -> str:
        try:
            return self._entity(connection, dice)
        except Exception:
            connection.close()  # an answer that comes late is none to the next request
            raise

    def _entity(self, connection: Connection, dice: Random) -> str:
        key = (f"p{dice.randrange(PARTITIONS)}", f"r{dice.randrange(ROWS)}")
        content = {"n": dice.randrange(10**6), "text": "x" * dice.randrange(400)}
        match dice.randrange(10):
            case 0 | 1 | 2:
                name, answer = "get", connection.get(TABLE, key)
            case 3:
                name = "query"
                answer = connection.request(
                    "GET", f"{TABLE}()", query=f"$filter=PartitionKey%20eq%20'{key[0]}'"
                )
            case 4:
                name = "delete"
                answer = connection.delete(TABLE, key)
            case 5:
                rows = dice.sample(range(ROWS), 20)
                changes = [Change("PUT", TABLE, (key[0], f"r{row}"), content) for row in rows]
                outcome = connection.change_set(changes)
                assert outcome.done, outcome
                return "change set"
            case 6 | 7:
                name, answer = "merge", connection.write("MERGE", TABLE, key, content)
            case _:
                entity = {"PartitionKey": key[0], "RowKey": key[1], **content}
                name, answer = "insert", connection.insert(TABLE, entity)
        assert answer.status < 300 or answer.code in EXPECTED, answer
        return name

    def _console(self, session: requests.Session) -> None:
        self._repeat("console", lambda number: self._page(session, PAGES[number % len(PAGES)]), 0.1)

    def _page(self, session: requests.Session, page: str) -> str:
        url = self._server.url + page.format(account=self._server.account)
        answer = session.get(url, timeout=PATIENCE)
        assert answer.status_code == 200 and "/login/" not in answer.url, (page, answer.status_code)
        return "console"

    def _call_api(self) -> None:
        self._repeat("api", lambda number: self._call(CALLS[number % len(CALLS)]), 0.5)

    def _call(self, call: str) -> str:
        self._ask("GET", call.format(account=self._server.account))
        return "api"

    def _stream(self) -> None:
        self._repeat("stream", lambda _: self._read_stream(), 0.1)

    def _read_stream(self) -> str:
        """Read changes as they come; what is timed is the first line."""
        began = time.monotonic()
        is_first = True
        headers = {**self._authorization, "Accept": "text/event-stream"}
        url = f"{self._base}{self._account}/changes?table={TABLE}"
        with requests.get(url, headers=headers, stream=True, timeout=PATIENCE) as answer:
            assert answer.status_code == 200, (answer.status_code, answer.text[:200])
            for line in answer.iter_lines():
                if is_first:
                    self._latencies.add("stream", time.monotonic() - began)
                    is_first = False
                if line.startswith(b"data:"):
                    json.loads(line[5:])
                if self._stop.is_set() or time.monotonic() > began + STREAMED:
                    break
        return ""

    # jobs

    def _job(self) -> None:
        jobs = (self._snapshot, self._export, self._snapshot, self._backup)
        self._repeat("job", lambda number: jobs[number % len(jobs)](number), 5.0)

    def _snapshot(self, number: int) -> str:
        """Take one, restore the table from it, delete it."""
        name = f"soak-{number}"
        snapshots = f"{self._account}/snapshots"
        self._ask("POST", snapshots, {"name": name})
        self._stop.wait(1.0)
        restored = self._ask("POST", f"{snapshots}/{name}/restore", {"tables": [TABLE]})
        for each in filter(None, (name, restored.json()["before"])):
            self._ask("DELETE", f"{snapshots}/{each}")
        return "snapshot and restore"

    def _ask(self, method: str, path: str, body: object = None) -> requests.Response:
        answer = requests.request(
            method, self._base + path, json=body, headers=self._authorization, timeout=PATIENCE
        )
        assert answer.status_code < 300, (method, path, answer.status_code, answer.text[:200])
        return answer

    def _export(self, _: int) -> str:
        file = self._folder / "export"
        self._manage("account", "export", self._server.account, str(file))
        file.unlink()
        return "export"

    def _backup(self, _: int) -> str:
        self._manage("backup", str(self._folder / "backups"), "--keep", str(KEPT))
        return "backup"

    def _manage(self, command: str, *arguments: str) -> None:
        data = ("--data", str(self._server.data))
        line = [sys.executable, str(ROOT / "manage.py"), command, *data, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, env=clean_environment(), check=False)
        assert done.returncode == 0, (command, (done.stderr or done.stdout)[-300:])
