"""Changes to servers that tests start: other constants, and random stalls.

tests.live_server puts this folder into PYTHONPATH, so that Python imports this module in a server and its workers.

- ``TEST_CONSTANTS``, in JSON, maps modules to names and values, so that a test need not wait as long as users do.
- ``TEST_STALLS=SEED`` shows whether a test depends on the speed of a server: one of a hundred steps between browser,
  server and database takes 50 ms longer. Each process draws its stalls from the seed.
"""

import json
import os
import select
import sys
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from random import Random
from types import ModuleType
from typing import Any

RATE = 0.01  # share of the steps
SECONDS = 0.05
# the steps: an answer that a thread waits for, a statement on its way, bytes of a client that arrive
STEPS = {
    "psycopg.connection": ("Connection", "wait"),
    "storage.sql.lanes": ("_Connection", "start"),
    "storage.protocol.http_connection": ("HttpConnection", "data_received"),
}


def set_constants(module: ModuleType, constants: dict[str, object]) -> None:
    """Replace constants of a module, which must have them."""
    for name, value in constants.items():
        assert hasattr(module, name), f"{module.__name__} has no {name}"
        setattr(module, name, value)


def slow_down(module: ModuleType, draws: Random) -> None:
    """Let the step of a module stall now and then."""
    owner, name = STEPS[module.__name__]
    cls = getattr(module, owner)
    step = getattr(cls, name)

    def stalling(*arguments: Any, **options: Any) -> object:
        if draws.random() < RATE:
            # time.sleep waits for a moment of the monotonic clock, which a test may have set back below zero
            select.select([], [], [], SECONDS)
        return step(*arguments, **options)

    setattr(cls, name, stalling)


class ChangingLoader(Loader):
    """Loads a module by its own loader, then changes it."""

    def __init__(self, loader: Loader, changes: list[Callable[[ModuleType], None]]) -> None:
        self._loader = loader
        self._changes = changes

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for change in self._changes:
            change(module)


class ChangingFinder:
    """Finds the modules that are changed."""

    def __init__(self, constants: dict[str, dict[str, object]], seed: str | None) -> None:
        self._constants = constants
        self._draws = None if seed is None else Random(seed)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        changes: list[Callable[[ModuleType], None]] = []
        if constants := self._constants.get(fullname):
            changes.append(lambda module: set_constants(module, constants))
        if (draws := self._draws) is not None and fullname in STEPS:
            changes.append(lambda module: slow_down(module, draws))
        if not changes:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.loader is not None
        spec.loader = ChangingLoader(spec.loader, changes)
        return spec


CONSTANTS = json.loads(os.environ.get("TEST_CONSTANTS", "{}"))
SEED = os.environ.get("TEST_STALLS")
if CONSTANTS or SEED is not None:
    sys.meta_path.insert(0, ChangingFinder(CONSTANTS, SEED))
