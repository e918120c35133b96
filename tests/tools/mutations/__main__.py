"""Put one fault at a time into a copy of the checkout, and say which of them tests notice.

`python3 -m tests.tools.mutations --only NAME --tests FILE ...`. All runs share one PostgreSQL, in which each gets a new
copy of the database. Ends with status 1 if a fault stays unnoticed.
"""

import argparse
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, ParamSpec

import django
import hypothesis  # noqa: F401
import psycopg
import pytest
import pytest_django.plugin  # noqa: F401

from tests.tools.mutations.faults import FAULTS, Fault
from tests.tools.mutations.plugin import DATABASE

P = ParamSpec("P")

ROOT: Final = Path(__file__).parents[3]
LEFT_OUT: Final = (".git", ".venv", "node_modules", "__pycache__", ".ruff_cache", ".mypy_cache")
TESTS: Final = ("tests/entities/test_write_law.py",)
TEMPLATE: Final = "tablero_template"
LIMIT: Final = 600.0  # seconds of a run, on a busy machine
FAST: Final = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


def fork(task: Callable[P, int], *arguments: P.args) -> int:
    """Run a function in a forked process, whose status it returns; return the id of the process."""
    process = os.fork()
    if process == 0:
        status = 3
        try:
            os.setsid()
            status = task(*arguments)
        finally:
            os._exit(status)
    return process


def run_in_child(task: Callable[P, int], *arguments: P.args) -> int:
    """Run a function in a forked process and return its status; 124 if it takes too long."""
    process = fork(task, *arguments)
    ends = time.monotonic() + LIMIT
    while time.monotonic() < ends:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return 124


@contextmanager
def database(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL with a migrated database; yields the folder of its socket."""
    answer, end = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.close(answer[0])
        os.close(end[1])
        try:
            serve(folder, answer[1], end[0])
        finally:
            os._exit(0)
    os.close(answer[1])
    os.close(end[0])
    with os.fdopen(answer[0]) as file:
        sockets = file.read()
    try:
        yield sockets
    finally:
        os.close(end[1])
        os.waitpid(process, 0)


def serve(folder: Path, answer: int, end: int) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
    django.setup()
    from django.db import connections

    from storage.server import embedded, options
    from storage.server.data_folder import DataFolder

    result = options.read({"TABLERO_DATA": str(folder / "unit")})
    with embedded.running(result, purpose="test", say=lambda line: None, settings=FAST):
        sockets = str(DataFolder(result.data).socket_folder)
        connections["default"].settings_dict["HOST"] = sockets
        connections["default"].creation.create_test_db(verbosity=0, autoclobber=True)
        connections["default"].close()
        connections["default"].close_pool()
        with administrator(sockets) as admin:
            admin.execute(f"ALTER DATABASE {DATABASE} RENAME TO {TEMPLATE}")
        os.write(answer, sockets.encode())
        os.close(answer)
        select.select([end], [], [])


def administrator(sockets: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(host=sockets, port=5432, user="tablero", dbname="postgres", autocommit=True)


def test(files: Sequence[str], log: Path) -> int:
    """Run tests in this process, which ends afterwards."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    quiet = (
        "-x",
        "-q",
        "--all",
        "-n",
        "0",
        "-p",
        "tests.tools.mutations.plugin",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    )
    return int(pytest.main([*quiet, *files]))


VERDICTS: Final = {0: "NOT FOUND", 1: "found", 124: "found (it hangs)"}


def try_fault(fault: Fault | None, files: Sequence[str], sockets: str, name: str, log: Path) -> str:
    """Return the verdict on a fault in the checkout that is the current folder."""
    with administrator(sockets) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    path = None if fault is None else Path(fault.file)
    original = "" if path is None else path.read_text()
    if fault is not None and path is not None:
        path.write_text(fault.apply(original))
    os.environ.update(TEST_SOCKETS=sockets, TEST_DATABASE=name)
    try:
        status = run_in_child(test, files, log)
    finally:
        if path is not None:
            path.write_text(original)
    return VERDICTS.get(status, f"status {status}")


def try_all(
    faults: Sequence[Fault | None], files: Sequence[str], sockets: str, number: int, folder: Path
) -> int:
    """Try faults one after the other in a checkout of their own; return how many stay unnoticed."""
    checkout = folder / f"checkout{number}"
    ignored = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(ROOT, checkout, ignore=ignored, symlinks=True)
    os.chdir(checkout)
    sys.path[:] = [str(checkout), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
        del sys.modules[name]
    unnoticed = 0
    for fault in faults:
        title, began = "no fault" if fault is None else fault.name, time.monotonic()
        log = folder / f"{title.replace(' ', '-')}.log"
        verdict = try_fault(fault, files, sockets, f"{DATABASE}_{number}", log)
        print(f"{title:45} {verdict:18} {time.monotonic() - began:6.1f} s", flush=True)
        unnoticed += fault is not None and verdict == VERDICTS[0]
    return unnoticed


VERDICTS: Final = {0: "NOT FOUND", 1: "found", 124: "found (it hangs)"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.mutations", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="NAME", help="faults, or beginnings of their names"
    )
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs go on at a time")
    parser.add_argument("--logs", type=Path, help="a folder that keeps the output of each run")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if not options.only or fault.name.startswith(tuple(options.only))]
    folder = Path(tempfile.mkdtemp(prefix="tablero-mutations-"))
    folder.chmod(0o711)
    try:
        with database(folder) as sockets:
            jobs = []
            for number in range(options.jobs):
                faults = [*([None] if number == 0 else []), *chosen[number :: options.jobs]]
                jobs.append(fork(try_all, faults, options.tests, sockets, number, folder))
            unnoticed = sum(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) for job in jobs)
    finally:
        if options.logs:
            options.logs.mkdir(exist_ok=True)
            for log in folder.glob("*.log"):
                shutil.copy(log, options.logs)
        shutil.rmtree(folder, ignore_errors=True)
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
