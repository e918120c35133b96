"""Which tests run side by side: files apart, those of a folder together and in order, the long ones first."""

import os
from collections import Counter
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
WORKERS = 2 * (
    os.cpu_count() or 1
)  # most tests wait for servers: more than there are cores, each with servers of its own

# folders and files that take long or wait for much, the longest first; the others fill what is left at the end
FIRST = (
    "tests/browser/test_pages.py",
    "tests/browser",
    "tests/server",
    "tests/docs",
    "tests/clients",
    "tests/checker",
    "tests/faults",
    "tests/replication",
    "tests/service",
    "tests/bench",
    "tests/test_newcomer.py",
)
# what the fast tier leaves out: browsers, SDKs, servers that are started, killed and filled
SLOW = (
    "tests/browser",
    "tests/clients",
    "tests/server",
    "tests/faults",
    "tests/replication",
    "tests/bench",
    "tests/docs",
    "tests/service",
)
# folders whose tests need a database: the fast tier takes a sample of them
SAMPLED = {"api", "console", "operations", "sql", "wire"}
SHARE = 4  # one of so many


def workers(arguments: list[str], *, fast: bool) -> int:
    """One process for a file or a single test, and for a server that is there already; else all cores.

    In the fast tier, whose tests hardly wait, more processes would only collect the tests once more.
    """
    if "TABLE_ENDPOINT" in os.environ or not all(Path(argument).is_dir() for argument in arguments):
        return 0
    return WORKERS // 2 if fast else WORKERS


def is_slow(path: Path) -> bool:
    """Whether a folder of tests is not in the fast tier."""
    return path in {ROOT / name for name in SLOW}


def fast_tier(items):
    """Choose the fast tier: the first variant of each test that is not slow, and a sample where it takes a database."""
    seen = set()
    chosen = []
    found = Counter()
    for item in items:
        if item.get_closest_marker("slow") is not None:
            continue
        _, folder, *_ = item.nodeid.split("/")
        # each case of `wire` is a variant of one test
        test = item.nodeid if folder == "wire" else item.nodeid.partition("[")[0]
        if test in seen:
            continue
        seen.add(test)
        found[folder] += 1
        if folder not in SAMPLED or found[folder] % SHARE == 1:
            chosen.append(item)
    return chosen


def name_of_parameter(value: object, argument: str) -> str | None:
    """Name bytes that nobody can read after their argument; None leaves the name to pytest.

    All processes of a run must give a test the same name, and compressed or encrypted bytes may contain a time.
    """
    is_readable = not isinstance(value, bytes) or (value.isascii() and value.decode("ascii").isprintable())
    return None if is_readable else argument


def place(nodeid: str) -> int:
    """In the order of the run."""
    starts = ((f"{path}/", f"{path}::") for path in FIRST)
    return next((number for number, start in enumerate(starts) if nodeid.startswith(start)), len(FIRST))


def portion(nodeid: str) -> str:
    """What one process runs from beginning to end: a file, the cases of one file of `wire`, or one test of kills."""
    path, _, name = nodeid.partition("::")
    if path == "tests/faults/test_kills.py":
        return nodeid  # each kills an operation twenty times
    topic = name.partition("[")[2].partition(":")[0]
    return f"{path}::{topic}" if path == "tests/wire/test_wire.py" else path


class Portions(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return portion(nodeid)
