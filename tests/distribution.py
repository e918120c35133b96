"""Tiers of tests, and which tests run in parallel: files separately, the tests of a folder together, the longest
first.
"""

import os
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

from storage.core.registry import SUBJECTS

ROOT = Path(__file__).parents[1]
CORES: Final = os.cpu_count() or 1

# folders and files that take long or wait for much, the longest first; the others fill what is left at the end
FIRST = (
    "tests/browser",
    "tests/server",
    "tests/docs",
    "tests/clients",
    "tests/faults",
    "tests/replication",
    "tests/service",
    "tests/test_newcomer.py",
    "tests/tools",
)
# the long tier, beside tests marked `long`: what kills, floods, compiles or installs something
LONG = (
    "tests/clients/csharp",
    "tests/clients/go",
    "tests/clients/java",
    "tests/clients/javascript",
    "tests/clients/python/test_bearer.py",
    "tests/clients/python/test_cosmos.py",
    "tests/clients/python/test_legacy.py",
    "tests/clients/rust",
    "tests/faults",
    "tests/replication",
    "tests/server/test_backup.py",
    "tests/server/test_release_files.py",
    "tests/server/test_releases.py",
    "tests/test_newcomer.py",
    "tests/tools",
)
LONG_FOLDERS = tuple(f"{path}/" for path in LONG)
LONG_PATHS = frozenset(ROOT / path for path in LONG)
# folders outside the fast tier: browsers, SDKs, servers that are started, killed and filled
SLOW = (
    "tests/browser",
    "tests/clients",
    "tests/server",
    "tests/faults",
    "tests/replication",
    "tests/docs",
    "tests/service",
    "tests/tools",
)
# folders whose tests need a database: the fast tier takes a sample of them
SAMPLED = {*SUBJECTS, "console", "relations", "rest", "runtime", "sql", "wire"}
SHARE = 4  # one of so many
LONGEST_NAME = 200  # bytes of a parameter that name a test


class Tier(StrEnum):
    """The set of tests that a run takes."""

    FAST = "fast"
    DEFAULT = "default"
    LONG = "long"
    ALL = "all"
    NAMED = "named"  # whatever is on the command line, long or not


SENTENCES: Final = {
    Tier.FAST: "the fast tier",
    Tier.DEFAULT: "the default tier; --all adds the long one",
    Tier.LONG: "the long tier",
    Tier.ALL: "the default and the long tier",
    Tier.NAMED: "what the command line names, of all tiers",
}


def tier(config: pytest.Config) -> Tier:
    """Return the tier that the switches ask for; raises UsageError where there are two of them."""
    switches = [name for name in (Tier.FAST, Tier.ALL, Tier.LONG) if config.getoption(name)]
    if len(switches) > 1:
        raise pytest.UsageError(f"--{switches[0]} and --{switches[1]} are different tiers.")
    if switches:
        return switches[0]
    return Tier.NAMED if is_named(config) else Tier.DEFAULT


def is_named(config: pytest.Config) -> bool:
    """Return whether the command line names files or folders; a worker learns it from its run."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["is_named"])
    return config.args_source is pytest.Config.ArgsSource.ARGS


def is_long(nodeid: str, *, is_marked: bool) -> bool:
    """Return whether a test is in the long tier: by its marker, its folder or its file."""
    path = nodeid.partition("::")[0]
    return is_marked or path in LONG or path.startswith(LONG_FOLDERS)


def split_tiers(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the default tier, and those of the long one."""
    default: list[pytest.Item] = []
    long: list[pytest.Item] = []
    for item in items:
        is_marked = item.get_closest_marker("long") is not None
        (long if is_long(item.nodeid, is_marked=is_marked) else default).append(item)
    return default, long


def workers(arguments: list[str], tier: Tier) -> int:
    """Return the number of processes: none for a file or a single test, and for a running server.

    Tests of the fast tier hardly wait. Each further process collects all tests and starts servers of its own, which
    is worth it where tests wait for processes that they start, kill or compile.
    """
    if "TABLE_ENDPOINT" in os.environ or not all(Path(argument).is_dir() for argument in arguments):
        return 0
    match tier:
        case Tier.FAST:
            return CORES
        case Tier.ALL | Tier.LONG:
            return 2 * CORES
        case _:
            return CORES + 1


def is_whole_long(path: Path) -> bool:
    """Return whether a folder or file has tests of the long tier alone, so that the default one need not collect it."""
    return path in LONG_PATHS


def is_slow(path: Path) -> bool:
    """Return whether a folder of tests is outside the fast tier."""
    return path in {ROOT / name for name in SLOW}


def fast_tier(items):
    """Choose the fast tier: the first variant of each test that is not slow, and a sample where it takes a database."""
    seen = set()
    chosen = []
    result = Counter()
    for item in items:
        if item.get_closest_marker("slow") is not None:
            continue
        _, folder, *_ = item.nodeid.split("/")
        # each case of `wire` is a variant of one test
        test = item.nodeid if folder == "wire" else item.nodeid.partition("[")[0]
        if test in seen:
            continue
        seen.add(test)
        result[folder] += 1
        if folder not in SAMPLED or result[folder] % SHARE == 1:
            chosen.append(item)
    return chosen


def name_of_parameter(value: object, argument: str) -> str | None:
    """Name long or unreadable bytes after their argument; None leaves the name to pytest.

    All processes of a run must give a test the same name, and compressed or encrypted bytes may contain a time.
    """
    if not isinstance(value, bytes):
        return None
    is_name = len(value) <= LONGEST_NAME and value.isascii() and value.decode("ascii").isprintable()
    return None if is_name else argument


def place(nodeid: str) -> int:
    """Return the place of a test in the order of the run."""
    starts = ((f"{path}/", f"{path}::") for path in FIRST)
    return next((number for number, start in enumerate(starts) if nodeid.startswith(start)), len(FIRST))


def portion(nodeid: str) -> str:
    """Name the tests that one process runs from beginning to end.

    They are a file, the cases of one file of `wire`, one test of kills, or all of the browser, in one Chromium.
    """
    path, _, name = nodeid.partition("::")
    if path.startswith("tests/browser/"):
        return "tests/browser"
    if path == "tests/faults/test_kills.py":
        return nodeid  # each kills an operation twenty times
    topic = name.partition("[")[2].partition(":")[0]
    return f"{path}::{topic}" if path == "tests/wire/test_wire.py" else path


class Portions(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return portion(nodeid)
