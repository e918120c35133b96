"""Cases of a client in a language of its own: one program runs all of them, each is a test of pytest.

The source of such a program names its cases: ``check("name", …)``, or ``checkStorage("name", "reason", …)`` if accounts
of the kind cosmos lack what it needs, or ``checkCosmos("name", "reason", …)`` if only they have it. It runs once per
kind of account, finds the server in the environment, and prints a line of JSON per case:
``{"name": …, "ok": …, "reason": …}``.
"""

import functools
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.accounts import add_account, cosmos_address
from tests.live_server import LiveServer

Outcomes = dict[str, str | None]  # how each case ended: None, or what went wrong

KINDS = ("storage", "cosmos")
RUN_TIMEOUT = 240  # less than a test has
_CASE = re.compile(
    r'^\s*[Cc]heck(|Storage|_storage|Cosmos)\(\s*"([^"\\]+)",(?:\s*"([^"\\]+)",)?', re.MULTILINE
)


@dataclass(frozen=True)
class Case:
    name: str
    only_kind: str = ""  # the kind of accounts it runs with; empty: all
    reason: str = ""  # why


def find_cases(sources: Iterable[Path]) -> list[Case]:
    """Return the cases that the files name, in their order."""
    return [case for path in sorted(sources) for case in read_cases(path.read_text("utf-8"))]


def read_cases(source: str) -> list[Case]:
    """Return the cases that the text of a program names, in their order."""
    return [
        Case(name, suffix.strip("_").lower(), reason if suffix else "")
        for suffix, name, reason in _CASE.findall(source)
    ]


def parameters(cases: Sequence[Case], *before: str) -> list[object]:
    """Return parameters ``(*before, kind, name)`` of a test of each case with each kind of account."""
    return [
        pytest.param(
            *before,
            kind,
            case.name,
            id="-".join((*before, kind, case.name)),
            marks=[] if case.only_kind in {"", kind} else [pytest.mark.skip(reason=case.reason)],
        )
        for kind in KINDS
        for case in cases
    ]


def names_of_kind(cases: Sequence[Case], kind: str) -> list[str]:
    """Return the names of the cases that the program runs with an account of this kind."""
    return [case.name for case in cases if case.only_kind in {"", kind}]


def run_once(function: Callable[..., Outcomes]) -> Callable[..., Outcomes]:
    """Call a function once for the same arguments, also if it fails: a program that crashes would run for each case."""
    returned: dict[tuple[object, ...], Outcomes] = {}
    raised: dict[tuple[object, ...], BaseException] = {}

    @functools.wraps(function)
    def run(*arguments: object) -> Outcomes:
        if arguments in raised:
            raise raised[arguments]
        if arguments not in returned:
            try:
                returned[arguments] = function(*arguments)
            except (Exception, pytest.skip.Exception) as failure:
                raised[arguments] = failure
                raise
        return returned[arguments]

    return run


def run_cases(
    command: Sequence[str],
    server: LiveServer,
    kind: str,
    environment: Mapping[str, str] | None = None,
    host: str = "localhost",
) -> Outcomes:
    """Run the program with a new account of this kind, and return how each case ended; ``host`` serves Cosmos."""
    cosmos = kind == "cosmos"
    endpoint = cosmos_address(server).replace("localhost", host) if cosmos else add_account(server).endpoint
    finished = subprocess.run(
        command,
        env={
            "PATH": os.environ.get("PATH", ""),
            **(environment or {}),
            "TABLE_KIND": kind,
            "TABLE_ENDPOINT": endpoint,
            "TABLE_ACCOUNT": endpoint.rpartition("/")[2],
            "TABLE_KEY": server.key,
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=RUN_TIMEOUT,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    # a compiler may print warnings before
    reports = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
    outcomes = {report["name"]: None if report["ok"] else report["reason"] for report in reports}
    assert len(outcomes) == len(reports), "two cases have the same name"
    return outcomes
