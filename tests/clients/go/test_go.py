"""Runs the cases of aztables: each is a test here, all of an account's kind run in one process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients import cases, programs
from tests.live_server import LiveServer

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
CASES = cases.find_cases((HERE / "cases").glob("*.go"))
Outcomes = Callable[[str], dict[str, str | None]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, server: LiveServer) -> Outcomes:
    """Compile the program and return a function that runs it once per kind of account."""
    program = programs.build_go(HERE, "./cases", tmp_path_factory.mktemp("go"))

    def run(kind: str) -> dict[str, str | None]:
        return cases.run_cases([program], server, kind)

    return cases.run_once(run)


@pytest.mark.parametrize(("kind", "name"), cases.parameters(CASES))
def test_case(outcomes: Outcomes, kind: str, name: str) -> None:
    failure = outcomes(kind)[name]

    assert failure is None, failure


@pytest.mark.parametrize("kind", cases.KINDS)
def test_every_case_is_known(outcomes: Outcomes, kind: str) -> None:
    assert sorted(outcomes(kind)) == sorted(cases.names_of_kind(CASES, kind))
