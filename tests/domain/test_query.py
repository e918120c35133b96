"""The class of a filter by what has to be read for it, why, and what would help."""

import tomllib
from pathlib import Path

import pytest

from storage.domain.filters.access_plan import POINT_LIMIT, AccessPath, AccessReason, Improvement, plan_access
from storage.domain.filters.parser import parse

CASES = tomllib.loads(Path(__file__).with_name("access_paths.toml").read_text())["case"]


@pytest.mark.parametrize("case", CASES, ids=[case["filter"] for case in CASES])
def test_q2_the_class_of_a_filter(case):
    access = plan_access(parse(case["filter"]))

    assert access.path == case["path"]
    assert access.reason == case["reason"]
    assert access.improvement == case.get("improvement")
    assert access.path is AccessPath.POINT or list(map(list, access.point_keys)) == case.get("points", [])


def test_q2_has_filters_enough_and_one_for_each_class_reason_and_improvement():
    assert len(CASES) >= 40
    assert {case["path"] for case in CASES} == set(AccessPath)
    assert {case["reason"] for case in CASES} == set(AccessReason)
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
