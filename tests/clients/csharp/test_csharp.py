"""Runs the cases of the .NET clients: each is a test here, all of a client and a kind of account run in one process."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients import cases, programs, report
from tests.live_server import LiveServer

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
COMMON = (HERE / "cases.cs").read_text("utf-8")  # its types end each program, because a program is one file
Outcomes = Callable[[str, str], dict[str, str | None]]


@dataclass(frozen=True)
class Program:
    file: str
    symbol: str  # defined in it

    @property
    def source(self) -> str:
        return f"#define {self.symbol}\n{(HERE / self.file).read_text('utf-8')}\n{COMMON}"

    @property
    def cases(self) -> list[cases.Case]:
        """Return the cases of the source except those below `#if !SYMBOL`."""
        left = re.sub(rf"^#if !{self.symbol}\b.*?^#endif", "", self.source, flags=re.MULTILINE | re.DOTALL)
        return cases.read_cases(left)


PROGRAMS = {
    "Azure.Data.Tables": Program("data_tables.cs", "DATA_TABLES"),
    "Microsoft.Azure.Cosmos.Table": Program("classic.cs", "COSMOS_TABLE"),
    "WindowsAzure.Storage": Program("classic.cs", "WINDOWS_STORAGE"),
}
VERSIONS = {client.name: client.version for client in report.load_clients()}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, server: LiveServer) -> Outcomes:
    """Return a function that runs the program of a client once per kind of account."""

    @cases.run_once
    def run(client: str, kind: str) -> dict[str, str | None]:
        package = f"{client}@{VERSIONS[client]}"
        command = programs.csharp(tmp_path_factory.mktemp("csharp"), PROGRAMS[client].source, package)
        environment = {**programs.csharp_environment(), "TABLE_CLIENT_VERSION": VERSIONS[client]}
        return cases.run_cases(command, server, kind, environment)

    return run


@pytest.mark.parametrize(
    ("client", "kind", "name"),
    [test for client, program in PROGRAMS.items() for test in cases.parameters(program.cases, client)],
)
def test_case(outcomes: Outcomes, client: str, kind: str, name: str) -> None:
    failure = outcomes(client, kind)[name]

    assert failure is None, failure


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("client", PROGRAMS)
def test_every_case_is_known(outcomes: Outcomes, client: str, kind: str) -> None:
    assert sorted(outcomes(client, kind)) == sorted(cases.names_of_kind(PROGRAMS[client].cases, kind))


def test_every_client_has_25_cases_of_each_kind() -> None:
    for program in PROGRAMS.values():
        for kind in cases.KINDS:
            assert len(cases.names_of_kind(program.cases, kind)) >= 25
