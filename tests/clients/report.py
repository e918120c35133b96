"""The table of tested clients in docs/compatibility.md, with their versions and numbers of cases.

It is made from clients.toml and from the tests as pytest collects them: `python3 -m tests.clients.report` updates
it, and tests/clients/test_report.py fails when it is outdated.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live_server import ROOT

HERE = Path(__file__).parent
DOCUMENT = ROOT / "docs" / "compatibility.md"
HEAD = "| language | client | version | cases with storage accounts | with Cosmos accounts |\n|---|---|---|---|---|\n"
PLUGIN = "tests.clients.report"  # this module, also when it is the program
COLLECTED = "TEST_COLLECTED"  # the file that a collecting process writes


@dataclass(frozen=True)
class Client:
    """A published client; the patterns are explained in clients.toml."""

    language: str
    name: str
    version: str
    tests: str
    cosmos: str = "cosmos"
    manifest: str = ""

    def count_cases(self, names: list[str]) -> tuple[int, int]:
        """Return how many of the tests use this client, with storage accounts and with Cosmos accounts."""
        own = [name for name in names if re.match(self.tests, name)]
        cosmos = sum(re.search(self.cosmos, name) is not None for name in own)
        return len(own) - cosmos, cosmos


def load_clients() -> list[Client]:
    return [Client(**entry) for entry in tomllib.loads((HERE / "clients.toml").read_text("utf-8"))["client"]]


def collect_tests() -> list[str]:
    """Return the names of all tests of this folder but those that are always skipped, relative to it."""
    with tempfile.TemporaryDirectory() as folder:
        collected = Path(folder) / "collected.json"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-qq", "--collect-only", "-p", PLUGIN, str(HERE)],
            cwd=ROOT,
            env={**os.environ, COLLECTED: str(collected)},
            check=True,
            capture_output=True,
        )
        names: list[str] = json.loads(collected.read_text("utf-8"))
    folder_name = f"{HERE.relative_to(ROOT).as_posix()}/"
    return [name.removeprefix(folder_name) for name in names]


@pytest.hookimpl(tryfirst=True)  # before a tier leaves some out
def pytest_collection_modifyitems(items):
    """Write the names down, as a plugin of the process that ``collect_tests`` starts."""
    names = [item.nodeid for item in items if item.get_closest_marker("skip") is None]
    Path(os.environ[COLLECTED]).write_text(json.dumps(names), "utf-8")


def write_table(clients: list[Client], names: list[str]) -> str:
    rows = []
    for client in clients:
        storage, cosmos = client.count_cases(names)
        rows.append(
            f"| {client.language} | `{client.name}` | {client.version} | {storage} | {cosmos or ''} |\n"
        )
    return HEAD + "".join(rows).replace("|  |", "| |")


def current_table() -> str:
    """Return the table as the document has it."""
    _, head, rest = DOCUMENT.read_text("utf-8").partition(HEAD)
    return head + rest.partition("\n\n")[0] + "\n"


def main() -> None:
    table = write_table(load_clients(), collect_tests())
    DOCUMENT.write_text(DOCUMENT.read_text("utf-8").replace(current_table(), table), "utf-8")


if __name__ == "__main__":
    main()
