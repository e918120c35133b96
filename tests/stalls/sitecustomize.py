"""Random stalls in servers that tests start, which show whether a test depends on the speed of a server.

With ``TEST_STALLS=SEED``, tests.live_server puts this folder into PYTHONPATH, so that Python imports this module in a
server and its workers. One of a hundred steps between browser, server and database then takes 50 ms longer. Each
process draws its stalls from the seed.
"""

import os
import select
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from random import Random
from types import ModuleType

RATE = 0.01  # share of the steps
SECONDS = 0.05
# the steps: an answer that a thread waits for, a statement on its way, bytes of a client that arrive
STEPS = {
    "psycopg.connection": ("Connection", "wait"),
    "storage.sql.lanes": ("_Connection", "start"),
    "storage.protocol.http_connection": ("HttpConnection", "data_received"),
}


def slow_down(module: ModuleType, draws: Random) -> None:
    """Let the step of a module stall now and then."""
    owner, name = STEPS[module.__name__]
    cls = getattr(module, owner)
    step = getattr(cls, name)

    def stalling(*arguments: object, **options: object) -> object:
        if draws.random() < RATE:
            # time.sleep waits for a moment of the monotonic clock, which a test may have set back below zero
            select.select([], [], [], SECONDS)
        return step(*arguments, **options)

    setattr(cls, name, stalling)


class StallingLoader(Loader):
    """Loads a module by its own loader, and lets its step stall."""

    def __init__(self, loader: Loader, draws: Random) -> None:
        self._loader = loader
        self._draws = draws

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        slow_down(module, self._draws)


class StallingFinder:
    """Finds the modules that have steps."""

    def __init__(self, draws: Random) -> None:
        self._draws = draws

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname not in STEPS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.loader is not None
        spec.loader = StallingLoader(spec.loader, self._draws)
        return spec


if seed := os.environ.get("TEST_STALLS"):
    sys.meta_path.insert(0, StallingFinder(Random(seed)))
