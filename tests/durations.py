"""Report of where the time of a run went, and whether a folder costs more than before.

`python -m tests.durations build/tests.xml` prints seconds of tiers and folders and the longest tests. It ends with
status 1 if a folder has grown beyond its figures in `tests/durations.toml`, which `--accept` updates from the run.

The figures hardly depend on the machine: servers that the tests of a folder start, and CPU time of the tests'
processes, relative to the other folders. Fixtures of a session or a package are left out, because the order of a run
decides which folder pays for them; so are other processes, whose time is known when they end, in whatever test.
"""

import argparse
import os
import statistics
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from tests.seeds import SEED

LONGEST = 15
FILE: Final = Path(__file__).with_suffix(".toml")
GROWTH: Final = 1.1  # limit for the number of servers
SHARED_STARTS: Final = 1  # a server that several folders share may be started by any of them
CPU_GROWTH: Final = (
    1.5  # limit for CPU time, relative to the growth of all folders: caches are cold on a busy machine
)
CPU_NOISE: Final = 20  # seconds by which that of a folder may differ between two runs
LEAST_CPU: Final = 5  # seconds from which a folder tells how fast this machine is


@dataclass(frozen=True)
class Cost:
    """Sums over tests of a folder."""

    tests: int
    starts: int  # started servers
    cpu: float  # seconds


@dataclass(frozen=True)
class Measured:
    """One test of a run."""

    nodeid: str
    seconds: float
    is_long: bool
    starts: int
    cpu: float

    @property
    def folder(self) -> str:
        """Return the folder right below the tests."""
        return "/".join(self.nodeid.partition("::")[0].split("/")[:2])


class Meter:
    """Servers that tests of this process start, and CPU time that it spends on them."""

    def __init__(self) -> None:
        self._starts = 0
        self._depth = 0  # nesting of fixtures that several folders share
        self._entered = 0.0
        self._shared_cpu = 0.0
        self._before = 0.0

    def install(self) -> None:
        """Count servers that this process starts from now on."""
        sys.addaudithook(self._audit)

    def begin(self) -> None:
        """Begin a test."""
        self._starts, self._shared_cpu, self._before = 0, 0.0, cpu_seconds()

    def end(self, *, is_long: bool) -> list[tuple[str, object]]:
        """Return properties of the test that ends, as JUnit's XML has them."""
        cpu = cpu_seconds() - self._before - self._shared_cpu
        return [("long", int(is_long)), ("starts", self._starts), ("cpu", f"{cpu:.2f}")]

    def enter_shared(self) -> None:
        """Leave out what happens from now on."""
        if not self._depth:
            self._entered = cpu_seconds()
        self._depth += 1

    def leave_shared(self) -> None:
        """Count again, unless a shared fixture needs another one."""
        self._depth -= 1
        if not self._depth:
            self._shared_cpu += cpu_seconds() - self._entered

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen" or self._depth:
            return
        words = [str(word) for word in arguments[1]]
        # the server that makes the data of all others is started by whichever test comes first
        if "serve" in words and not any(word.endswith(f"/{SEED}") for word in words):
            self._starts += 1


def cpu_seconds() -> float:
    """Return CPU time of this process."""
    times = os.times()
    return times.user + times.system


def read_run(path: Path) -> list[Measured]:
    """Read the tests of a run from JUnit's XML."""
    run = []
    for case in ElementTree.parse(path).iter("testcase"):
        values = {each.get("name"): each.get("value", "") for each in case.iter("property")}
        if "nodeid" in values:
            run.append(
                Measured(
                    nodeid=values["nodeid"],
                    seconds=float(case.get("time", "0")),
                    is_long=values["long"] == "1",
                    starts=int(values["starts"]),
                    cpu=float(values["cpu"]),
                )
            )
    return run


def costs_by_folder(run: Iterable[Measured]) -> dict[str, Cost]:
    """Sum up the tests of each folder."""
    folders: dict[str, list[Measured]] = {}
    for test in run:
        folders.setdefault(test.folder, []).append(test)
    return {
        folder: Cost(
            tests=len(tests),
            starts=sum(test.starts for test in tests),
            cpu=sum(test.cpu for test in tests),
        )
        for folder, tests in sorted(folders.items())
    }


def read_accepted(path: Path = FILE) -> dict[str, Cost]:
    """Read the figures that were accepted."""
    if not path.exists():
        return {}
    return {folder: Cost(**values) for folder, values in tomllib.loads(path.read_text()).items()}


def write_accepted(costs: Mapping[str, Cost], path: Path = FILE) -> None:
    """Accept the figures of a run."""
    lines = ["# written by python -m tests.durations --accept build/tests.xml, after .ci/run"]
    for folder, cost in costs.items():
        figures = f"tests = {cost.tests}, starts = {cost.starts}, cpu = {cost.cpu:.1f}"
        lines.append(f'"{folder}" = {{ {figures} }}')
    path.write_text("\n".join(lines) + "\n")


def growth(accepted: Mapping[str, Cost], measured: Mapping[str, Cost]) -> Iterator[str]:
    """Yield a sentence for each folder that costs more than it may."""
    ratios = [
        measured[folder].cpu / cost.cpu
        for folder, cost in accepted.items()
        if folder in measured and cost.cpu >= LEAST_CPU
    ]
    slowness = statistics.median(ratios) if ratios else 1.0
    for folder in sorted(accepted.keys() & measured.keys()):
        before, now = accepted[folder], measured[folder]
        if now.starts > before.starts * GROWTH + SHARED_STARTS:
            yield f"{folder} starts {now.starts} servers instead of {before.starts}."
        if now.cpu > before.cpu * slowness * CPU_GROWTH + CPU_NOISE:
            yield (
                f"{folder} takes {now.cpu / slowness:.0f} s of CPU time instead of {before.cpu:.0f} s, on a machine"
                f" that takes {slowness:.1f} times as long as the one of that figure."
            )


def summary(run: Iterable[Measured]) -> Iterator[str]:
    """Yield lines with seconds of all processes together, setup and teardown included."""
    tests: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    tiers: Counter[str] = Counter()
    for test in run:
        tests[test.nodeid] += test.seconds
        folders[test.folder] += test.seconds
        tiers["long" if test.is_long else "default"] += test.seconds
    yield from (f"{seconds:8.1f} s  {name} tier" for name, seconds in sorted(tiers.items()))
    yield from (f"{seconds:8.1f} s  {name}" for name, seconds in folders.most_common())
    yield f"The {min(LONGEST, len(tests))} longest of {len(tests)} tests:"
    yield from (f"{seconds:8.1f} s  {name}" for name, seconds in tests.most_common(LONGEST))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.durations", description=__doc__)
    parser.add_argument("run", type=Path, help="the XML that --junit-xml has written")
    parser.add_argument("--accept", action="store_true", help="take the figures of this run from now on")
    arguments = parser.parse_args()
    run = read_run(arguments.run)
    print(*summary(run), sep="\n")
    measured = costs_by_folder(run)
    if arguments.accept:
        write_accepted(measured)
        return
    sentences = list(growth(read_accepted(), measured))
    if sentences:
        command = f"python -m tests.durations --accept {arguments.run}"
        sys.exit("\n".join([*sentences, f"If it has to be so, run {command} and commit {FILE.name}."]))


if __name__ == "__main__":
    main()
