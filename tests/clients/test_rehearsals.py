"""The suites of the SDKs under rehearsed failures, with their default retries: what fails, and by whose fault."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from tests.live_server import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PYTHON = "tests/clients/python"
JAVASCRIPT = "tests/clients/javascript/test_javascript.py"

# tests that ask how many entities a page has, or take one page of an old client, which leaves the rest to its caller
ABOUT_PAGES = (
    "test_parameters_of_every_type_are_compared|test_pages_|test_come_in_pages|test_tables_are_listed_in_pages"
    "|serves tables in Atom|finds entities in Atom|writes a batch in Atom|cosmos: pages|in pages"
    "|continues a list of tables|lists more than 1000|for the SDK of before"
    "|of a batch of the SDK of before|by the SDK of before"
)
# the SDKs repeat three times what was answered so
EXHAUSTED = "ServerBusy"
# azure-core does not repeat a POST or PATCH without an answer
UNANSWERED = "ServiceResponseError|ServiceRequestError"
# core-rest-pipeline does not repeat what got half an answer
HALF = "Error reading response as text: aborted"


class Run(NamedTuple):
    """Tests of a suite under a set of rules: the tests and the errors that may fail, and how many tests at most."""

    rules: str
    paths: Sequence[str]
    choice: str = ""  # an expression of pytest
    tests: str = ""
    errors: str = ""
    most: int = 0


RUNS = {
    "python-short-pages": Run(
        "short-pages",
        [f"{PYTHON}/test_{it}.py" for it in ("queries", "tables", "types")],
        "",
        ABOUT_PAGES,
        "",
        8,
    ),
    "javascript-short-pages": Run("short-pages", [JAVASCRIPT], "", ABOUT_PAGES, "", 16),
    "javascript-throttled": Run("throttled", [JAVASCRIPT], "undoes and transaction", "", EXHAUSTED, 1),
    "python-flaky": Run(
        "flaky", [f"{PYTHON}/test_{it}.py" for it in ("entities", "types")], "", "", UNANSWERED, 12
    ),
    "javascript-flaky": Run(
        "flaky", [JAVASCRIPT], "(entit or type) and not before and not Atom", "", HALF, 8
    ),
}


def failures(run: Run, folder: Path) -> tuple[int, dict[str, str]]:
    """Run the tests; return how many there are, and the error of each that fails."""
    report = folder / "report.xml"
    choice = ["-k", run.choice] if run.choice else []
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--tb=line"),
            *(f"--junitxml={report}", *choice, *run.paths),
        ],
        cwd=ROOT,
        env={**os.environ, "TEST_REHEARSAL": run.rules},
        capture_output=True,
        text=True,
    )
    assert finished.returncode in (0, 1), finished.stdout + finished.stderr
    cases = ElementTree.parse(report).findall(".//testcase")
    errors = {
        case.get("name", ""): f"{problem.get('message')} {problem.text}"
        for case in cases
        for problem in (*case.findall("failure"), *case.findall("error"))
    }
    return len(cases), errors


@pytest.mark.parametrize("name", RUNS)
def test_a_suite_under_a_rehearsal(name, tmp_path):
    run = RUNS[name]
    number, errors = failures(run, tmp_path)

    unexpected = {
        test: error
        for test, error in errors.items()
        if not (run.tests and re.search(run.tests, test))
        and not (run.errors and re.search(run.errors, error))
    }
    assert unexpected == {}
    assert number > len(errors)
    assert len(errors) <= run.most, errors
