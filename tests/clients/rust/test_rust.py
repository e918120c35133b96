"""Runs the cases of azure_data_tables: each is a test here, all run in one process.

Accounts of the kind cosmos are left out: the client takes no answer without x-ms-version, which Azure Cosmos DB does
not send.
"""

from pathlib import Path

import pytest

from tests.clients import cases, programs
from tests.live_server import LiveServer

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
CASES = cases.find_cases((HERE / "src").glob("*.rs"))
Outcomes = dict[str, str | None]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, server: LiveServer) -> Outcomes:
    """Compile the program and run it. Return how each case ended: None, or what went wrong."""
    program = programs.build_rust(HERE, tmp_path_factory.mktemp("rust"))
    return cases.run_cases([program], server, "storage")


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_case(outcomes: Outcomes, name: str) -> None:
    failure = outcomes[name]

    assert failure is None, failure


def test_every_case_is_known(outcomes: Outcomes) -> None:
    assert sorted(outcomes) == sorted(case.name for case in CASES)
