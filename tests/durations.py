"""Where the time of a run went: by folder, and the tests that took longest."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

LONGEST = 15


class Report(Protocol):
    """One phase of a test, as pytest reports it; ``duration`` in seconds."""

    nodeid: str
    duration: float


def summary(reports: Iterable[Report]) -> Iterator[str]:
    """Yield lines with seconds of all processes together: setup and teardown included."""
    tests: Counter[str] = Counter()
    for report in reports:
        tests[report.nodeid] += report.duration
    folders: Counter[str] = Counter()
    for nodeid, seconds in tests.items():
        folders[folder(nodeid)] += seconds
    yield from (f"{seconds:8.1f} s  {name}" for name, seconds in folders.most_common())
    yield f"The {min(LONGEST, len(tests))} longest of {len(tests)} tests:"
    yield from (f"{seconds:8.1f} s  {name}" for name, seconds in tests.most_common(LONGEST))


def folder(nodeid: str) -> str:
    """Return the folder right below the tests."""
    return "/".join(nodeid.partition("::")[0].split("/")[:2])
