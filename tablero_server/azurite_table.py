"""The command `azurite-table`: Tablero for programs that start Azurite's command of that name and parse its output.

It takes the options of Azurite and prints the lines of both `azurite-table` and `azurite`. Before these lines,
nothing is written to standard error, which some programs take for a failure.
"""

import argparse
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn
from urllib.parse import urlsplit

from tablero_server import testing

FOLDER = "__tablero__"  # in the folder of --location
AZURITE_FILE = "__azurite_db_table__.json"
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")
_SERVES = re.compile(r"^Tablero serves on (\S+)$", re.MULTILINE)


class _StopError(BaseException):
    """A signal to end, which like KeyboardInterrupt is no error that a handler of errors may take."""


class _StopSignal:
    """The handler of the signals to end: the first raises what interrupts whatever waits.

    Python drops what is raised while it forks, so ``check`` follows the start of a process. Signals are not ignored
    after the first, since a process that is being started would ignore them, too.
    """

    def __init__(self) -> None:
        self.is_received = False

    def __call__(self, number: int, frame: object) -> None:
        if not self.is_received:
            self.is_received = True
            raise _StopError

    def check(self) -> None:
        if self.is_received:
            raise _StopError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if match := re.search(r"unrecognized arguments: (--?(?:blob|queue)\w*)", message):
            message = f"Tablero serves tables only, so it has no {match[1]}"
        self.exit(
            1, f"azurite-table: {message[:1].upper()}{message[1:]}. See: tablero azurite-table --help\n"
        )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tablero azurite-table",
        allow_abbrev=False,
        description="Serve tables in place of the command azurite-table of Azurite, with its options.",
    )
    parser.add_argument("--tableHost", default="127.0.0.1", metavar="HOST", help="address to serve on")
    parser.add_argument("--tablePort", default="10002", metavar="PORT", help="port; 0 picks a free one")
    parser.add_argument(
        "-l", "--location", metavar="DIR", help=f"keep the data in DIR/{FOLDER}; here by default"
    )
    parser.add_argument("--inMemoryPersistence", action="store_true", help="forget the data at the end")
    parser.add_argument("-d", "--debug", metavar="FILE", help="append the log of the server to a file")
    parser.add_argument("--cert", metavar="FILE", help="certificate in PEM: serve https")
    parser.add_argument("--key", metavar="FILE", help="private key of the certificate in PEM")
    parser.add_argument("--oauth", choices=("basic",), help="accept any access token that has not expired")
    for names in (("-s", "--silent"), ("-L", "--loose"), ("--skipApiVersionCheck",), ("--disableProductStyleUrl",),
                  ("--disableTelemetry",)):  # fmt: skip
        parser.add_argument(*names, action="store_true", help="taken, and without an effect")
    parser.add_argument("--tableKeepAliveTimeout", metavar="SECONDS", help="taken, and without an effect")
    return parser


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.inMemoryPersistence and options.location:
        parser.error("--inMemoryPersistence cannot be used with --location")
    if not re.fullmatch(r"\d{1,5}", options.tablePort):
        parser.error(f"--tablePort is {options.tablePort!r}, not a number")
    stop = _StopSignal()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    host = f"[{options.tableHost}]" if ":" in options.tableHost else options.tableHost
    scheme = "https" if options.cert else "http"
    try:
        _say(f"Azurite Table service is starting on {host}:{options.tablePort}")
        _say(f"Azurite Table service is starting at {scheme}://{host}:{options.tablePort}")
        with _data(options) as data, _server(options, host, data) as server:
            stop.check()
            port = _wait_until_ready(server, options.debug)
            _say(f"Azurite Table service successfully started on {host}:{port}")
            _say(f"Azurite Table service is successfully listening at {scheme}://{host}:{port}")
            file = data.parent / AZURITE_FILE
            if file.exists():
                source, target = (shlex.quote(str(it)) for it in (data.parent, data))
                sys.stderr.write(
                    f"The tables in {file} are not read. Copy them: tablero copy {source} ACCOUNT --data {target}\n"
                )
            try:
                return server.wait()
            except _StopError:
                _say("Azurite Table service is closing...")
    except _StopError:
        pass
    except testing.ServerError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    _say("Azurite Table service successfully closed")
    return 0


@contextmanager
def _data(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the data folder of the server: in the location, or a temporary one with a database made before."""
    if not options.inMemoryPersistence:
        folder = Path(options.location or ".").absolute()
        folder.mkdir(parents=True, exist_ok=True)
        yield folder / FOLDER
        return
    folder = Path(tempfile.mkdtemp(prefix=f"tablero-memory-{os.getuid()}-"))
    try:
        folder.chmod(0o700 if os.getuid() else 0o711)  # root's PostgreSQL runs as another user
        testing.copy_template(folder / "data")
        yield folder / "data"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(options: argparse.Namespace, host: str, data: Path) -> Iterator["subprocess.Popen[str]"]:
    given = ["--data", str(data), "--listen", f"{host}:{options.tablePort}"]
    if options.inMemoryPersistence:
        given += ["--durability", "relaxed"]
    if not _LOOPBACK.fullmatch(options.tableHost):
        given.append("--allow-development-account")  # as Azurite serves it on any address
    for name, option in (("cert", "--tls-cert"), ("key", "--tls-key"), ("oauth", "--oauth")):
        if value := getattr(options, name):
            given += [option, value]
    if options.debug:
        given += ["--log-level", "info"]
    accounts = {name: value for name, value in os.environ.items() if name == "AZURITE_ACCOUNTS"}
    process = testing.start("serve", *given, environment=accounts)
    try:
        yield process
    finally:
        testing.end(process, testing.IMPATIENCE if options.inMemoryPersistence else testing.PATIENCE)


def _wait_until_ready(server: "subprocess.Popen[str]", log: str | None) -> int:
    """Return the port on which the server serves; what it says afterwards is passed on."""
    assert server.stdout is not None
    said = ""
    for line in server.stdout:
        said += line
        if line.startswith("Ready"):
            match = _SERVES.search(said)
            assert match is not None
            threading.Thread(target=_pass_on, args=(server.stdout, log), daemon=True).start()
            return urlsplit(match[1]).port or 0
    raise testing.ServerError(said.strip())


def _pass_on(output: IO[str], log: str | None) -> None:
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(Path(log).open("a")) if log else sys.stderr
        for line in output:
            if line != "Stopping ...\n":
                with contextlib.suppress(OSError):
                    file.write(line)
                    file.flush()


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the reader has closed the pipe
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
