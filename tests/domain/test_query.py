"""The class of a filter by the rows it has to read, with the reason and advice."""

import tomllib
from pathlib import Path

import pytest

from storage.domain.filters.access_plan import POINT_LIMIT, AccessPath, AccessReason, Improvement, plan_access
from storage.domain.filters.parser import parse

CASES = tomllib.loads(Path(__file__).with_name("access_paths.toml").read_text())["case"]


def _name(reason):
    return reason.name.lower().replace("_", "-")


@pytest.mark.parametrize("case", CASES, ids=[case["filter"] for case in CASES])
def test_q2_the_class_of_a_filter(case):
    access = plan_access(parse(case["filter"]))

    assert access.path == case["path"]
    assert _name(access.reason) == case["reason"]
    assert access.improvement == case.get("improvement")
    assert access.path is AccessPath.POINT or list(map(list, access.point_keys)) == case.get("points", [])


def test_q2_covers_each_class_reason_and_improvement():
    assert len(CASES) >= 40
    assert {case["path"] for case in CASES} == set(AccessPath)
    assert {case["reason"] for case in CASES} == set(map(_name, AccessReason))
    assert {case["improvement"] for case in CASES if "improvement" in case} == set(Improvement)


def test_more_entities_than_are_worth_a_request_each_are_not_named():
    keys = " or ".join(f"RowKey eq '{number}'" for number in range(POINT_LIMIT + 1))

    assert plan_access(parse(f"PartitionKey eq 'p' and ({keys})")).point_keys == ()
    assert (
        len(plan_access(parse(f"PartitionKey eq 'p' and ({keys[: keys.rindex(' or')]})")).point_keys)
        == POINT_LIMIT
    )


def test_alternatives_multiplied_many_times_cost_nothing():
    text = " and ".join(["(RowKey eq 'a' or RowKey eq 'b')"] * 40)

    assert plan_access(parse(text)).point_keys == ()


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("V gt 5", {"V"}),
        ("V ge 'a' and V lt 'b'", {"V"}),
        ("Timestamp gt datetime'2020-01-01'", {"Timestamp"}),
        ("PartitionKey eq 'p' and V gt 5", {"V"}),
        ("V gt 5 and W lt 5", {"V", "W"}),
        ("V gt 5 or W lt 5", {"V", "W"}),
        ("V gt 5 or W eq 5", {"V"}),
        ("V gt 5 and W eq 5", None),
        ("V gt 5 and Flag ne true", None),
        ("V gt 5 and I gt 5", None),
        ("V eq 5 or I gt 5", None),
        ("PartitionKey gt 'a'", None),
        ("V ne 5", set()),
        ("not (V gt 5)", set()),
        ("V gt 5 or RowKey gt 'a'", set()),
        ("true", None),
    ],
)
def test_properties_worth_an_index(text, candidates):
    assert plan_access(parse(text)).index_candidates({"I"}) == candidates
