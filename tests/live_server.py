"""A Tablero in a process of its own, started by `manage.py serve` as a user would."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
OVERRIDES = ROOT / "tests" / "overrides"  # in PYTHONPATH, it changes servers: see sitecustomize there
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START_TIMEOUT = 180
STOP_TIMEOUT = 60


@dataclass
class LiveServer:
    process: subprocess.Popen
    data: Path
    output: list[str] = field(default_factory=list)
    account: str = ACCOUNT
    key: str = KEY
    url: str = ""
    database: str = ""  # URL, unless it is the server's own
    distributes: bool = False  # whether the tables of new accounts are distributed
    is_ready: threading.Event = field(init=False, default_factory=threading.Event)
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def endpoint(self) -> str:
        return f"{self.url}/{self.account}"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def connection_string(self) -> str:
        scheme = self.url.partition(":")[0]
        return (
            f"DefaultEndpointsProtocol={scheme};AccountName={self.account};AccountKey={self.key};"
            f"TableEndpoint={self.endpoint}"
        )

    def manage(self, command: str, *arguments: str) -> str:
        """Run a command of manage.py on the server's data, and return what it prints.

        Raises AssertionError with all that it printed if it fails.
        """
        from tests import forked

        status, output, errors = forked.run_command(self.data, command, *arguments, database=self.database)
        assert status == 0, (command, *arguments, output, errors)
        return output

    def change_accounts(self, *arguments: str) -> None:
        self.manage("account", *arguments)
        if self.distributes and arguments[0] == "add":
            self.manage("account", "distributes", arguments[1], "on")

    def add_token(self, user: str, name: str, scope: str = "manage") -> str:
        """Return a new token of the management API that may do what its user may, within a scope."""
        told = self.manage("token", "add", user, name, "--scope", scope)
        return next(word for word in told.split() if word.startswith("tbl_"))

    def rehearse(self, rules: str, *, seed: int = 7, table: str = "") -> None:
        """Start a rehearsal of a set of rules in the account, or in a table of it."""
        self.change_accounts("rehearsals", self.account, "on")
        scope = ("--table", table) if table else ()
        self.manage("rehearse", self.account, rules, "--seed", str(seed), *scope)

    def end_rehearsal(self) -> None:
        """Stop the rehearsal of the account."""
        self.manage("rehearse", self.account, "--stop")

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not self.is_ready.wait(0.1):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the server did not start:\n" + "\n".join(self.output))
        text = "\n".join(self.output)
        self.url = re.search(r"^Tablero serves on (\S+)$", text, re.MULTILINE)[1]

    def postmaster(self) -> int:
        return int((self.data / "database" / "postmaster.pid").read_text().splitlines()[0])

    @property
    def gave_up_requests(self) -> bool:
        """Return whether the stopped server waited for open requests until its limit, in vain."""
        return any("graceful shutdown exceeded" in line for line in self.output)

    def stop(self) -> int:
        """Stop the server with SIGTERM and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(STOP_TIMEOUT)

    def read(self) -> None:
        for line in self.process.stdout:
            self.output.append(line.rstrip())
            if line.startswith("Ready"):
                self.is_ready.set()


@contextmanager
def start_server(data, *arguments, env=None, wait=True, shell="true", checkout=ROOT, constants=None):
    """Run a server on a free port with its data in `data`; it ends with the block, even after an error.

    `shell` runs in the process before, such as `ulimit -n 256`; `constants` maps modules to names and values that the
    server has instead: see tests/overrides. Polls of the management API do not reach its quota.
    """
    configured = {"TABLERO_API_REQUEST_LIMIT": "1000000", **(env or {})}
    if constants:
        configured["TEST_CONSTANTS"] = json.dumps(constants)
    if constants or "TEST_STALLS" in os.environ:
        configured["PYTHONPATH"] = str(OVERRIDES)
    process = subprocess.Popen(
        [
            *("sh", "-c", f'{shell} && exec "$@"', "sh"),
            sys.executable,
            str(checkout / "manage.py"),
            "serve",
            "--data",
            str(data),
            "--listen",
            "127.0.0.1:0",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**clean_environment(), **configured},
    )
    live = LiveServer(process, Path(data), database=configured.get("DATABASE_URL", ""))
    try:
        if wait:
            live.wait_until_ready()
        yield live
    finally:
        if process.poll() is None:
            try:
                live.stop()
            except subprocess.TimeoutExpired:
                live.kill()
        live.reader.join(STOP_TIMEOUT)
        if live.reader.is_alive():  # closing its file would wait for it
            raise AssertionError(f"something of the server on {data} does not end")
        process.stdout.close()


def copy_data(source, data):
    """Copy the data of a server that has ended, whichever user owns its files."""
    data.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(source), str(data)], check=True)  # takes half the time of shutil
    for pattern in ("run", "lock", "*.lock", "*.log"):
        for path in list(data.rglob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return data


def clean_environment():
    """Return this process's environment without variables that would configure a server."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TABLERO_", "OTEL_")) and name not in {"DATABASE_URL", "AZURITE_ACCOUNTS"}
    }
