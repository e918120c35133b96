"""Tiers of tests, and the names by which the processes of a run know them."""

import gzip

import pytest

from tests.distribution import FIRST, LONG, ROOT, SLOW, is_long, name_of_parameter, portion


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (gzip.compress(b"a,b"), "body"),
        (b"a\n", "body"),
        (b"\xff", "body"),
        (b"a,b", None),
        ("a\n", None),
        (1, None),
    ],
)
def test_unreadable_bytes_are_in_no_name(request, value, name):
    assert name_of_parameter(value, "body") == name
    assert name is None or request.node.callspec.id.startswith("value")


def test_each_path_that_is_named_has_tests():
    assert [name for name in {*LONG, *SLOW, *FIRST} if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("nodeid", "is_marked", "expected"),
    [
        ("tests/faults/test_kills.py::test_one[a]", False, True),
        ("tests/faults_of_others/test_one.py::test_one", False, False),
        ("tests/test_newcomer.py::test_one", False, True),
        ("tests/domain/test_names.py::test_one", False, False),
        ("tests/domain/test_names.py::test_one", True, True),
    ],
)
def test_a_test_is_long_by_its_marker_its_folder_or_its_file(nodeid, is_marked, expected):
    assert is_long(nodeid, is_marked=is_marked) is expected


def test_one_process_runs_all_tests_of_the_browser():
    assert portion("tests/browser/test_grid.py::test_keys") == portion(
        "tests/browser/test_pages.py::test_page[a]"
    )
