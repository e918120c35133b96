"""Load of clients of every consistency level, on a primary and two replicas; one replica fails in several ways.

python3 -m tests.tools.bench.consistency
"""

import argparse
import gc
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.replication.faults import FAULTS
from tests.replication.world import BOUND, LAG, World, violations, world
from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import scratch_folder
from tests.tools.checker.clients import SECONDARY, Load
from tests.tools.checker.history import Read
from tests.tools.checker.levels import Checker, Violation

KINDS = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual", SECONDARY)
SETTLING = 3.0  # seconds after a fault


@dataclass(frozen=True, slots=True)
class Phase:
    """A fault, when it lasted, and how many entities each node looked up meanwhile."""

    fault: str
    began: float
    ended: float
    answered: dict[str, int]


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    gc.disable()  # a collection of so many recorded operations would be a pause
    with scratch_folder() as folder, world(folder / "world") as made:
        with made.loads() as loads:
            phases = []
            for fault in options.faults:
                progress(f"{fault}: {options.seconds:g} s")
                phases.append(run(made, fault, options.seconds))
        progress("checking")
        result = violations(loads)
    sys.stdout.write(report(loads, phases, result))
    return 1 if result else 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.consistency", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each fault, default 15")
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS), metavar="NAME")
    return parser.parse_args(arguments)


def run(made: World, fault: str, seconds: float) -> Phase:
    nodes = (made.primary, made.near, made.far)
    with FAULTS[fault](made):
        began, before = time.monotonic(), lookups(made)
        time.sleep(seconds)
        ended, after = time.monotonic(), lookups(made)
    time.sleep(SETTLING)
    answered = {
        node.name: after[node.name] - before[node.name]
        for node in nodes
        if node.name in before and node.name in after
    }
    return Phase(fault, began, ended, answered)


def lookups(made: World) -> dict[str, int]:
    """Return the lookups of each node; the far one is left out while it is killed or stopped."""
    asked = [made.primary, made.near]
    if made.far.answers():
        asked.append(made.far)
    return {node.name: node.reads() for node in asked}


def report(loads: Sequence[Load], phases: Sequence[Phase], broken: Sequence[Violation]) -> str:
    writes = sum(len(load.history.writes) for load in loads)
    count = sum(len(load.history.reads) for load in loads)
    refused = sum(len(load.history.refused) for load in loads)
    lines = [
        f"{writes:,} writes and {count:,} reads, {refused:,} refused, {len(broken)} violations.",
        *(f"- {violation.promise}: {violation.what}" for violation in broken[:20]),
        "",
        f"The bound is {BOUND} s; a replica is left out when it is {LAG} s behind. The oldest read missed a write",
        "that was acknowledged so many seconds before it began. The pause is the longest without a read of a kind.",
        "",
        f"| the replica | {' | '.join(f'oldest {kind}, s' for kind in KINDS)} | longest pause, ms |",
        f"|---|{'---|' * (len(KINDS) + 1)}",
    ]
    measured = [(phase, aged_reads(loads, phase)) for phase in phases]
    lines += [summary(phase, reads) for phase, reads in measured]
    for phase, reads in measured:
        lines += table(phase, reads)
    return "\n".join(lines) + "\n"


AgedReads = dict[str, list[tuple[Read, float]]]  # each kind of read, with ages


def aged_reads(loads: Sequence[Load], phase: Phase) -> AgedReads:
    result: AgedReads = defaultdict(list)
    for load in loads:
        checker = Checker(load.history)
        for it in load.history.reads:
            if phase.began <= it.began < phase.ended:
                result[it.level].append((it, checker.staleness(it)))
    return result


def summary(phase: Phase, reads: AgedReads) -> str:
    ages = [f"{max((age for _, age in reads[kind]), default=0.0):.2f}" for kind in KINDS]
    longest = max(pause(reads[kind]) for kind in KINDS)
    return f"| {phase.fault.replace('_', ' ')} | {' | '.join(ages)} | {1e3 * longest:.0f} |"


def table(phase: Phase, reads: AgedReads) -> list[str]:
    total = max(1, sum(phase.answered.values()))
    shares = ", ".join(f"{name} {number / total:.0%}" for name, number in phase.answered.items())
    return [
        "",
        f"## {phase.fault.replace('_', ' ')}",
        "",
        f"Looked up in: {shares}",
        "",
        "| reads | per second | stale | oldest, s | p50, ms | p99, ms | pause, ms |",
        "|---|---|---|---|---|---|---|",
        *(row(kind, reads[kind], phase) for kind in KINDS if reads[kind]),
    ]


def row(kind: str, reads: Sequence[tuple[Read, float]], phase: Phase) -> str:
    ages = [age for _, age in reads]
    times = sorted(it.ended - it.began for it, _ in reads)
    return (
        f"| {kind} | {len(reads) / (phase.ended - phase.began):.0f} | {sum(age > 0 for age in ages) / len(ages):.1%} "
        f"| {max(ages):.2f} | {1e3 * times[len(times) // 2]:.1f} | {1e3 * times[int(len(times) * 0.99)]:.1f} "
        f"| {1e3 * pause(reads):.0f} |"
    )


def pause(found: Sequence[tuple[Read, float]]) -> float:
    ends = sorted(it.ended for it, _ in found)
    return max((later - earlier for earlier, later in pairwise(ends)), default=0.0)


if __name__ == "__main__":
    sys.exit(main())
