"""Constants and stalls of servers that tests start."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from tests.live_server import OVERRIDES, ROOT
from tests.overrides.sitecustomize import STEPS

COUNT = """
import select
select.select = lambda *files_and_seconds: stalls.append((step, files_and_seconds[-1]))
import {module}
stalls = []
for step in range(1000):
    try:
        {module}.{owner}.{name}(None)
    except (AttributeError, TypeError):
        pass
print(stalls)
"""


def draw(seed, module="psycopg.connection"):
    """Return the steps of a thousand that stall in a process, with their seconds."""
    owner, name = STEPS[module]
    done = subprocess.run(
        [sys.executable, "-c", COUNT.format(module=module, owner=owner, name=name)],
        env={**os.environ, "PYTHONPATH": str(OVERRIDES), "TEST_STALLS": seed},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_one_step_in_a_hundred_stalls_and_the_seed_decides_which():
    first = draw("7")

    assert 2 <= first.count("0.05") <= 25
    assert draw("7") == first
    assert draw("8") != first


@pytest.mark.parametrize("module", STEPS)
def test_the_steps_exist(module):
    owner, name = STEPS[module]
    assert callable(getattr(getattr(import_module(module), owner), name))


def test_a_constant_is_replaced_wherever_its_module_is_imported():
    done = subprocess.run(
        [sys.executable, "-c", "import colorsys; print(colorsys.ONE_SIXTH)"],
        env={
            **os.environ,
            "PYTHONPATH": str(OVERRIDES),
            "TEST_CONSTANTS": '{"colorsys": {"ONE_SIXTH": 77.5}}',
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "77.5\n"
