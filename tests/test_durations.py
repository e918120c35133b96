"""Costs of a run, read from its XML and compared with the accepted ones."""

import subprocess
import sys

import pytest

from tests.durations import (
    Cost,
    Measured,
    Meter,
    costs_by_folder,
    growth,
    read_accepted,
    summary,
    write_accepted,
)
from tests.live_server import ROOT


def measured(nodeid, seconds, *, is_long=False, starts=0, cpu=0.0):
    return Measured(nodeid, seconds, is_long, starts, cpu)


RUN = [
    measured("tests/sql/test_a.py::test_one", 3.0, cpu=2.0),
    measured("tests/sql/test_b.py::test_two[x::y]", 0.5, cpu=0.5),
    measured("tests/browser/deep/test_c.py::test_three", 9.0, is_long=True, starts=2, cpu=4.0),
]


def test_sums_the_seconds_of_tiers_folders_and_tests():
    assert list(summary(RUN)) == [
        "     3.5 s  default tier",
        "     9.0 s  long tier",
        "     9.0 s  tests/browser",
        "     3.5 s  tests/sql",
        "The 3 longest of 3 tests:",
        "     9.0 s  tests/browser/deep/test_c.py::test_three",
        "     3.0 s  tests/sql/test_a.py::test_one",
        "     0.5 s  tests/sql/test_b.py::test_two[x::y]",
    ]


def test_accepted_costs_are_read_as_they_were_written(tmp_path):
    costs = costs_by_folder(RUN)
    assert costs == {"tests/browser": Cost(1, 2, 4.0), "tests/sql": Cost(2, 0, 2.5)}
    write_accepted(costs, tmp_path / "costs.toml")
    assert read_accepted(tmp_path / "costs.toml") == costs
    assert read_accepted(tmp_path / "none.toml") == {}


ACCEPTED = {"tests/a": Cost(9, 20, 100.0), "tests/b": Cost(9, 0, 100.0), "tests/c": Cost(9, 0, 100.0)}


@pytest.mark.parametrize(
    ("changes", "complaints"),
    [
        ({}, []),
        ({"tests/a": Cost(9, 23, 100.0)}, []),
        ({"tests/a": Cost(9, 24, 100.0)}, ["tests/a starts 24 servers instead of 20."]),
        ({"tests/b": Cost(9, 1, 100.0)}, []),
        ({"tests/b": Cost(9, 2, 100.0)}, ["tests/b starts 2 servers instead of 0."]),
        ({"tests/b": Cost(9, 0, 169.0)}, []),
        ({"tests/new": Cost(9, 9, 900.0)}, []),
        # a machine that is slower as a whole
        ({name: Cost(9, cost.starts, 300.0) for name, cost in ACCEPTED.items()}, []),
    ],
)
def test_a_folder_that_starts_a_tenth_more_servers_has_grown(changes, complaints):
    assert list(growth(ACCEPTED, {**ACCEPTED, **changes})) == complaints


def test_a_folder_that_takes_more_than_the_others_has_grown_on_any_machine():
    slow = {name: Cost(9, cost.starts, 200.0) for name, cost in ACCEPTED.items()}
    (sentence,) = growth(ACCEPTED, {**slow, "tests/c": Cost(9, 0, 400.0)})
    assert sentence.startswith("tests/c takes 200 s of CPU time instead of 100 s")


def test_servers_are_counted_except_those_that_folders_share():
    meter = Meter()
    meter.install()
    meter.begin()
    command = [sys.executable, "-c", "pass"]
    subprocess.run([*command, "serve"], check=True)
    subprocess.run(command, check=True)
    meter.enter_shared()
    subprocess.run([*command, "serve"], check=True)
    meter.leave_shared()
    properties = dict(meter.end(is_long=True))
    assert (properties["starts"], properties["long"]) == (1, 1)


def test_the_command_fails_for_a_folder_that_has_grown(tmp_path):
    """It fails also for a run of a single test in a folder that has figures."""
    xml = tmp_path / "run.xml"
    properties = {"nodeid": "tests/domain/test_a.py::test_one", "long": 0, "starts": 999, "cpu": 1}
    values = "".join(f'<property name="{name}" value="{value}"/>' for name, value in properties.items())
    xml.write_text(
        f'<testsuites><testcase time="1.5"><properties>{values}</properties></testcase></testsuites>'
    )
    command = [sys.executable, "-m", "tests.durations", str(xml)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "     1.5 s  tests/domain\n" in done.stdout
    is_accepted = "tests/domain" in read_accepted()
    assert ("starts 999 servers" in done.stderr, done.returncode) == (is_accepted, int(is_accepted))
