"""The summary of a run's durations."""

from typing import NamedTuple

from tests.durations import summary


class Phase(NamedTuple):
    nodeid: str
    duration: float


def test_sums_the_phases_of_tests_and_the_tests_of_folders():
    reports = [
        Phase("tests/sql/test_a.py::test_one", 1.0),
        Phase("tests/sql/test_a.py::test_one", 2.0),
        Phase("tests/sql/test_b.py::test_two[x::y]", 0.5),
        Phase("tests/browser/deep/test_c.py::test_three", 9.0),
    ]

    assert list(summary(reports)) == [
        "     9.0 s  tests/browser",
        "     3.5 s  tests/sql",
        "The 3 longest of 3 tests:",
        "     9.0 s  tests/browser/deep/test_c.py::test_three",
        "     3.0 s  tests/sql/test_a.py::test_one",
        "     0.5 s  tests/sql/test_b.py::test_two[x::y]",
    ]
