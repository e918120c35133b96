"""Common parts of the tests of clients in other languages."""

import pytest

from tests.clients import cases

SOURCE = """
check("of both", func() {
    CheckStorage("of storage", "Cosmos DB has none", async () =>
check_storage(
    "of storage, too", "none there",
checkCosmos("of Cosmos", "storage accounts refuse it", () => {
recheck("no case", 1)
"""


def test_cases_are_read_with_their_kinds():
    result = cases.read_cases(SOURCE)

    assert result == [
        cases.Case("of both"),
        cases.Case("of storage", "storage", "Cosmos DB has none"),
        cases.Case("of storage, too", "storage", "none there"),
        cases.Case("of Cosmos", "cosmos", "storage accounts refuse it"),
    ]
    assert cases.names_of_kind(result, "storage") == ["of both", "of storage", "of storage, too"]
    assert cases.names_of_kind(result, "cosmos") == ["of both", "of Cosmos"]


@pytest.mark.parametrize("failure", [AssertionError("crashed"), pytest.skip.Exception("no compiler")])
def test_a_failing_program_runs_once(failure):
    calls = []

    def run(kind):
        calls.append(kind)
        if kind == "cosmos":
            raise failure
        return {kind: None}

    run = cases.run_once(run)
    for _ in range(2):
        assert run("storage") == {"storage": None}
        with pytest.raises(type(failure)):
            run("cosmos")

    assert calls == ["storage", "cosmos"]
