"""Servers for tests: one for all processes of a run, with accounts and branches of their own for each test.

`join` gives a `Service` that lives as long as any process that joined it, whatever kills the others. Its data are a
copy of a database that is made once for a version of Tablero and kept in the user's cache, so a start takes about a
second. They are in the temporary folder, and gone with the server. `python -m tablero_server.testing` gives other
languages the same: it prints the service as JSON and ends with its standard input.
"""

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

from tablero_server import __main__ as command

API: Final = "/ui/api/v1"
PATIENCE: Final = (
    60.0  # seconds for an answer of the management API, which copies large seeds, or for the end of a server
)
IMPATIENCE: Final = 0.5  # seconds for the end of a server whose data are not needed any more
_USER: Final = "tests"
_LIFE: Final = "2h"  # lifetime of accounts at a shared server, if they are not deleted
SILENCE: Final = 0.3  # seconds without a request after an exception, which show that its client has ended
_PR_SET_PDEATHSIG: Final = 1
_OF_TESTS: Final = {
    "AZURITE_ACCOUNTS",
    "DATABASE_URL",
    "DJANGO_SETTINGS_MODULE",
    "PYTHONDEVMODE",
    "PYTHONTRACEMALLOC",
    "PYTHONWARNINGS",
}
_SERVES: Final = re.compile(r"^Tablero serves on (\S+)$", re.MULTILINE)


class ServerError(Exception):
    """The server did not start, or its management API refused a request."""


@dataclass(frozen=True)
class Account:
    """A storage account; ``connection_string`` is what every Azure SDK takes."""

    service: "Service"
    name: str
    connection_string: str

    @property
    def key(self) -> str:
        return self._parts["AccountKey"]

    @property
    def endpoint(self) -> str:
        return self._parts["TableEndpoint"]

    @property
    def _parts(self) -> dict[str, str]:
        return dict(part.split("=", 1) for part in self.connection_string.split(";") if part)

    def snapshot(self, name: str) -> None:
        """Keep all that the account has now, under a name."""
        self.service.request("POST", f"accounts/{self.name}/snapshots", {"name": name})

    def branch(self, snapshot: str | None = None) -> "Account":
        """Return a new account with the contents of this one, now or in a snapshot."""
        body = {
            "name": _new_name(),
            **({} if snapshot is None else {"snapshot": snapshot}),
            **self.service.settings,
        }
        made = self.service.request("POST", f"accounts/{self.name}/branches", body)
        branch = self.service.account_of(made["account"])
        self.service.allow_rehearsals(branch)
        return branch

    @contextmanager
    def rehearse(
        self, name: str = "", *, rules: Sequence[Mapping[str, Any]] | None = None, **options: Any
    ) -> "Iterator[Rehearsal]":
        """Rehearse failures by a set of rules, or by ``rules``, until the end of the block.

        An exception that leaves the block gets the faults that were found as a note.

        Options are those of ``POST rehearsals`` of the management API: seed, table, scale, duration.
        """
        body = {
            **({"set": name} if name else {}),
            **({} if rules is None else {"rules": list(rules)}),
            **{option: value for option, value in options.items() if value is not None},
        }
        path = f"accounts/{self.name}/rehearsals"
        started = self.service.request("POST", path, body)
        run = Rehearsal(self.service, f"{path}/{started['id']}", started["set"], started["seed"])
        try:
            yield run
        except Exception as error:
            time.sleep(SILENCE)
            run.stop()
            if faults := run.describe_faults():
                error.add_note(faults)
            raise
        finally:
            run.stop()

    def change(self, **settings: Any) -> None:
        """Change settings of the account, such as ``strictness``, like PATCH of the management API."""
        self.service.request("PATCH", f"accounts/{self.name}", settings)

    def delete(self) -> None:
        self.service.request("DELETE", f"accounts/{self.name}?with_tables=true")


@dataclass(frozen=True)
class Rehearsal:
    """Rehearsal of failures; the report on its clients is the JSON of the management API."""

    service: "Service"
    path: str
    name: str  # name of the set of rules
    seed: int

    def stop(self) -> None:
        self.service.request("POST", f"{self.path}/stop")

    @property
    def report(self) -> dict[str, Any]:
        """Report on the clients up to now."""
        report: dict[str, Any] = self.service.request("GET", f"{self.path}/report")
        return report

    @property
    def held(self) -> bool:
        """Verdict: there were requests, and no finding is a fault."""
        return bool(self.report["held"])

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Findings about all clients, each with the user agent of its client."""
        return [
            {"agent": client["agent"], **finding}
            for client in self.report["clients"]
            for finding in client["findings"]
        ]

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests in the order in which they were answered, each with the rules that struck it."""
        exchanges: list[dict[str, Any]] = []
        path: str | None = f"{self.path}/requests?limit=500"
        while path is not None:
            page = self.service.request("GET", path)
            exchanges += page["items"]
            path = page["next"] and page["next"].partition(f"{API}/")[2]
        return exchanges

    def check(self) -> None:
        """Raise an AssertionError that says what the clients did wrong, if they did."""
        if faults := self.describe_faults():
            raise AssertionError(faults)
        if not self.report["requests"]:
            raise AssertionError(f"Nothing was requested {self._title}.")

    def describe_faults(self) -> str:
        """Return a text with a sentence for each fault; empty without faults."""
        lines: list[str] = []
        for finding in self.findings:
            if finding["severity"] == "fault":
                times = f" ({finding['count']} times)" if finding["count"] > 1 else ""
                lines += [f"- {finding['text']}{times}", f"  {finding['remedy']}"]
                lines.append(f"  x-ms-request-id: {', '.join(finding['requests'])}")
        return "\n".join([f"Not held {self._title}:", *lines]) if lines else ""

    @property
    def _title(self) -> str:
        return f"under {self.name} (seed {self.seed})"


@dataclass(frozen=True)
class Service:
    """A running server, and a token of an admin for its management API."""

    url: str
    token: str
    folder: str  # shared by the processes of a run
    is_shared: bool = False  # the server outlives the run

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of every account that is made for tests."""
        return {"ttl": _LIFE} if self.is_shared else {}

    def create_account(self, name: str | None = None, **settings: Any) -> Account:
        """Return a new account; settings are those of ``POST accounts`` of the management API."""
        body = {"name": name or _new_name(), **self.settings, **settings}
        account = self.account_of(self.request("POST", "accounts", body))
        self.allow_rehearsals(account)
        return account

    def allow_rehearsals(self, account: Account) -> None:
        """Let failures be rehearsed in an account of tests; an older server has no rehearsals."""
        with contextlib.suppress(ServerError):
            self.request("PATCH", f"accounts/{account.name}", {"may_rehearse": True})

    def branch_of(self, name: str, load: Callable[[Account], object]) -> Account:
        """Return a new account with the data of a seed, which ``load`` writes once for all processes of the run."""
        with self._locked(name) as known:
            seed = known.read_text() if known.exists() else ""
            if not seed:
                account = self.create_account()
                load(account)
                account.snapshot("seed")
                seed = account.name
                known.write_text(seed)
        return Account(self, seed, "").branch("seed")

    @contextmanager
    def _locked(self, name: str) -> Iterator[Path]:
        path = _private(Path(self.folder)) / f"seed-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield path

    def account_of(self, described: Mapping[str, Any]) -> Account:
        text = described.get("connection_string")
        if text is None:
            text = self.request("GET", f"accounts/{described['name']}/connection-string")["text"]
        return Account(self, described["name"], text)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer of the management API as Python data; raises ServerError when it refuses."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        content = None if body is None else json.dumps(body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        with self._turn:
            status, answer = self._send(method, f"{API}/{path}", content, headers)
        if status >= 300:
            raise ServerError(
                f"{method} {path} was answered with {status}: {answer.decode(errors='replace')}"
            )
        return json.loads(answer) if answer else None

    def _send(
        self, method: str, target: str, content: str | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        connection = self._connection
        try:
            connection.request(method, target, content, dict(headers))
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            connection.close()  # so that the next request opens another
            raise

    def close(self) -> None:
        """Close the connection to the management API, which the next request opens again."""
        with self._turn:
            self._connection.close()

    @cached_property
    def _turn(self) -> threading.Lock:
        return threading.Lock()

    @cached_property
    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.netloc, timeout=PATIENCE)


def _new_name() -> str:
    return f"t{secrets.token_hex(10)}"


def use(url: str, token: str) -> Service:
    """Use a server that runs already; the token needs an admin and the scope to manage. Close it at the end."""
    folder = Path(tempfile.gettempdir()) / f"tablero-tests-{os.getuid()}-{_hash(url)}-{_run_id()}"
    return Service(url.rstrip("/"), token, str(folder), is_shared=True)


@contextmanager
def join(run: str = "") -> Iterator[Service]:
    """Use the server of a run, which the first process starts, and the last one ends."""
    folder = Path(tempfile.gettempdir()) / f"tablero-tests-{os.getuid()}-{_hash(run) if run else _run_id()}"
    with _membership(folder):
        with (folder / "start.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            described = folder / "service.json"
            if not _is_locked(folder / "keeper.lock"):
                described.unlink(missing_ok=True)  # left by a keeper that was killed
                shutil.rmtree(folder / "data", ignore_errors=True)
                _start_keeper(folder)
            service = Service(**json.loads(described.read_text()))
        with closing(service):
            yield service


def _run_id() -> str:
    """Return what the processes of a run of pytest-xdist have in common; else what only this process has."""
    return _hash(os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()} {secrets.token_hex(8)}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _private(folder: Path) -> Path:
    """Make a folder for this user; one of another user, or a link, under its name is refused.

    The PostgreSQL of root runs as another user, who has to find its own folder inside.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700 if os.getuid() else 0o711, parents=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        raise ServerError(f"{folder} belongs to another user, or is no folder.")
    return folder


@contextmanager
def _membership(folder: Path) -> Iterator[None]:
    """Share a lock that ends with this process, whatever ends it: the server runs for as long as it is shared."""
    while True:
        lock = _shared(_private(folder) / "users.lock")
        if lock is not None:
            with lock:
                yield
            return


def _shared(path: Path) -> IO[str] | None:
    """Return a file with a shared lock; None if its folder goes at this moment, with the server of the last users."""
    lock = None
    try:
        lock = path.open("w")
        fcntl.flock(lock, fcntl.LOCK_SH)
        if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
            return lock
    except FileNotFoundError:
        pass
    if lock is not None:
        lock.close()
    return None


def _is_locked(path: Path) -> bool:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _start_keeper(folder: Path) -> None:
    keeper = subprocess.Popen(
        [sys.executable, "-P", "-m", "tablero_server.testing", "--keep", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
        text=True,
        start_new_session=True,  # Ctrl-C is for the tests
    )
    assert keeper.stdout is not None
    said = []
    with keeper.stdout:
        for line in keeper.stdout:
            if line == "ready\n":
                keeper.returncode = 0  # it outlives this process, perhaps
                return
            said.append(line)
    keeper.wait()
    raise ServerError("The server for the tests did not start:\n" + "".join(said))


def _keep(folder: Path) -> None:
    """Run a server until no other process shares its lock, and leave nothing behind."""
    try:
        with (folder / "users.lock").open("w") as users, (folder / "keeper.lock").open("w") as own:
            fcntl.flock(own, fcntl.LOCK_EX)
            with _running(folder / "data") as (url, token):
                new = folder / "service.new"
                _write(new, json.dumps(asdict(Service(url, token, str(folder)))))
                new.rename(folder / "service.json")
                _say("ready")
                fcntl.flock(users, fcntl.LOCK_EX)
            _remove(folder)  # still locked, so that no process joins a server that is gone
    except BaseException:
        _remove(folder)
        raise


def _remove(folder: Path) -> None:
    """Remove a folder; who comes meanwhile makes a new one under its name."""
    gone = folder.with_name(f"{folder.name}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _write(path: Path, secret: str) -> None:
    path.touch(mode=0o600)
    path.write_text(secret)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def _running(data: Path) -> Iterator[tuple[str, str]]:
    """Run a server with a copy of the template; yields its URL and a token."""
    token = copy_template(data)
    with _served(data) as url:
        yield url, token


@contextmanager
def _served(data: Path, patience: float = IMPATIENCE) -> Iterator[str]:
    process = start("serve", "--data", str(data), "--listen", "127.0.0.1:0", "--durability", "relaxed")
    try:
        assert process.stdout is not None
        yield _read_url(process.stdout)
    finally:
        end(process, patience)


def start(*arguments: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start a command that ends with this process."""
    return subprocess.Popen(
        _tablero(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**_environment(), **(environment or {})},
        text=True,
        preexec_fn=_end_with_parent,
    )


def end(process: "subprocess.Popen[str]", patience: float = IMPATIENCE) -> None:
    """Stop a server: in order, or at once if that takes longer than ``patience`` seconds."""
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)


def _end_with_parent() -> None:
    """Have the server told when the keeper is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _read_url(output: IO[str]) -> str:
    said = ""
    for line in output:
        said += line
        if line.startswith("Ready"):
            threading.Thread(target=_pass_on, args=(output,), daemon=True).start()
            match = _SERVES.search(said)
            assert match is not None
            return match[1]
    raise ServerError(said)


def _pass_on(output: IO[str]) -> None:
    """Show the output of a server as long as a process reads it: a server whose output is not read would wait."""
    for line in output:
        with contextlib.suppress(OSError):
            if line != "Stopping ...\n":
                sys.stderr.write(line)


def _tablero(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "tablero_server", *arguments]


def _environment() -> dict[str, str]:
    """Return this process's environment without settings of servers, of Python and of a project of Django."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TABLERO_") and name not in _OF_TESTS
    }
    package = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH")]))
    return {
        **environment,
        "PYTHONPATH": path,
        "TABLERO_API_REQUEST_LIMIT": "1000000",
        "XDG_STATE_HOME": os.devnull,  # commands of the user do not mean the servers of tests
    }


def copy_template(data: Path) -> str:
    """Copy the data folder of an admin with a token, which is made once for this version; return the token."""
    template = _cache() / _schema()
    with (_private(_cache()) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not (template / "token").exists():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (template / "token").exists():
                _make_template(template)
        subprocess.run(["cp", "-Rp", str(template), str(data)], check=True)  # with owners
        return (template / "token").read_text()


def _make_template(folder: Path) -> None:
    for old in _cache().iterdir():
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
    new = folder.with_suffix(".new")
    data = ("--data", str(new))
    with _served(new, PATIENCE):  # its database ends in order, so that no copy of it has to recover
        _run("user", "add", _USER, "--admin", *data)
        said = _run("token", "add", _USER, "tests", "--scope", "manage", "--days", "0", *data)
    _write(new / "token", next(word for word in said.split() if word.startswith("tbl_")))
    new.rename(folder)


def _run(*arguments: str) -> str:
    done = subprocess.run(
        _tablero(*arguments), env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ServerError(done.stderr)
    return done.stdout


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or ("~/.cache" if os.getuid() else "/var/cache")
    return Path(base).expanduser() / "tablero" / "tests"


def _schema() -> str:
    """Return what identifies the database of this version: its migrations, and the programs that made it."""
    application = command.APPLICATION
    migrations = sorted(
        path.name for part in ("storage", "console") for path in application.glob(f"{part}/migrations/*.py")
    )
    return _hash(" ".join([sys.prefix, *migrations]))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tablero_server.testing", description="Run a server for tests."
    )
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--run", default="", metavar="NAME", help="join the server of a run, if one process has started it"
    )
    arguments = parser.parse_args()
    if arguments.keep is not None:
        _keep(arguments.keep)
        return
    with join(arguments.run) as service:
        account = service.create_account()
        told = {
            "url": service.url,
            "token": service.token,
            "account": account.name,
            "connectionString": account.connection_string,
        }
        _say(json.dumps(told))
        sys.stdin.read()


if __name__ == "__main__":
    main()
