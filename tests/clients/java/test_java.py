"""Runs the cases of both clients for Java: each is a test here, all of an account's kind run in one process."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients import cases, programs
from tests.live_server import LiveServer

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
CLIENTS = ["tables", "storage"]  # com.azure:azure-data-tables, com.microsoft.azure:azure-storage
CASES = {client: cases.find_cases((HERE / client).glob("*.java")) for client in CLIENTS}
Outcomes = Callable[[str, str], dict[str, str | None]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, server: LiveServer) -> Outcomes:
    """Return what compiles the program of a client once, and runs it once per kind of account."""

    @functools.cache
    def command(client: str) -> list[str]:
        sources = [HERE / "Checks.java", *(HERE / client).glob("*.java")]
        return programs.build_java(HERE / client / "pom.xml", sources, tmp_path_factory.mktemp(client))

    @functools.cache
    def run(client: str, kind: str) -> dict[str, str | None]:
        # the older client takes the account for a part of the host, unless that is an address
        return cases.run_cases(command(client), server, kind, host="127.0.0.1")

    return run


@pytest.mark.parametrize(
    ("client", "kind", "name"),
    [parameter for client in CLIENTS for parameter in cases.parameters(CASES[client], client)],
)
def test_case(outcomes: Outcomes, client: str, kind: str, name: str) -> None:
    failure = outcomes(client, kind)[name]

    assert failure is None, failure


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_case_is_known(outcomes: Outcomes, client: str, kind: str) -> None:
    assert sorted(outcomes(client, kind)) == sorted(cases.names_of_kind(CASES[client], kind))
