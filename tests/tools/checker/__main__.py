"""Kill servers and their database, cut and delay connections, and check what clients did and saw meanwhile.

python3 -m tests.tools.checker --kills 1000 --seed 7

Histories are checked for linearizability of each entity, whole change sets, and the same changes in the change feed, in
the lists of versions and in reads of the past. It ends with status 1 if a law is broken, and leaves the history in a
file. Ctrl-C ends it with the figures of the tables so far.
"""

import argparse
import gc
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

from tests.tools.bench.rounds import progress
from tests.tools.bench.servers import scratch_folder
from tests.tools.checker.operations import DURING
from tests.tools.checker.run import Figures, Plan, Recovery, run
from tests.tools.checker.site import KILLS, OTHERS, Fault, Site, kill_a_replica
from tests.tools.promises import ledger

FAULTS_PER_TABLE = 20
OFTEN = 12  # times as often as each of the others, which take half a minute
SHORT = (*KILLS, kill_a_replica)
ALL_KILLS = (*SHORT, *DURING)
UNACKNOWLEDGED = ("writes with an unknown outcome", "refused writes", "reads of the past")
REHEARSED = ("rehearsed failures of writes", "of them committed")


def main(arguments: list[str] | None = None) -> int:
    options = read(arguments)
    dice = Random(options.seed)
    total = Figures()
    gc.disable()  # a collection of so many recorded operations would be a pause; each table ends with one
    began = time.monotonic()
    with (
        suppress(KeyboardInterrupt),
        scratch_folder() as folder,
        Site(
            folder, "--durability", options.durability, has_archive=True, has_replica=True
        ).running() as site,
    ):
        token = site.api_token()
        for number in count():
            kills = sum(total.faults[it.__name__] for it in ALL_KILLS)
            if (kills >= options.kills and number >= options.tables) or total.violations:
                break
            plan = Plan(
                options.clients,
                options.answers,
                seed=options.seed * 1000 + number,
                is_durable=options.durability == "on",
                rehearsal=options.rehearse,
                record=Path(f"checker-{options.seed}-{number}.pickle"),
            )
            total.merge(run(site, token, plan, choose(dice) if kills < options.kills else []))
            progress(
                f"{kills} kills, {total.operations.total():,} operations, {time.monotonic() - began:.0f} s"
            )
    seconds = time.monotonic() - began
    sys.stdout.write(report(total, options.seed, seconds))
    if options.record:
        record(total, options, seconds)
    return 1 if total.violations else 0


def read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.tools.checker",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "--kills", type=int, default=100, help="of processes, default 100; as many other faults as fit"
    )
    parser.add_argument("--tables", type=int, default=0, help="at least so many, one after the other")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--answers", type=int, default=150, help="to writes between two faults, default 150")
    parser.add_argument(
        "--rehearse", default="", metavar="SET", help="also rehearse failures, such as ambiguous"
    )
    parser.add_argument("--durability", choices=("on", "relaxed"), default="on")
    parser.add_argument("--record", action="store_true", help="keep the figures for docs/reliability.md")
    return parser.parse_args(arguments)


def choose(dice: Random) -> list[Fault]:
    """Return faults in random order, mostly kills that take seconds."""
    often = [OFTEN] * len(SHORT)
    return dice.sample(
        (*ALL_KILLS, *OTHERS), FAULTS_PER_TABLE, counts=(*often, *[1] * len((*DURING, *OTHERS)))
    )


def report(total: Figures, seed: int, seconds: float) -> str:
    lines = [f"seed {seed}, {seconds:.0f} s", ""]
    lines += [f"{number:8,}  {name.replace('_', ' ')}" for name, number in total.faults.most_common()]
    lines += ["", *(f"{number:8,}  {name}" for name, number in total.operations.items())]
    lines += ["", *describe_recoveries(total)]
    lines += ["", f"longest time without an acknowledged write: {max(total.pauses, default=0.0):.1f} s"]
    lines += [f"{len(total.violations)} violations"]
    lines += [f"- {it.promise}: {it.what} {it.operation or ''}" for it in total.violations[:20]]
    return "\n".join(lines) + "\n"


def record(total: Figures, options: argparse.Namespace, seconds: float) -> None:
    """Keep the figures of whole tables, also of a run that was interrupted."""
    kills = sum(total.faults[it.__name__] for it in ALL_KILLS)
    writes, reads = (total.operations[it] for it in ("acknowledged writes", "reads"))
    figures = {
        "kills": kills,
        "other faults": total.faults.total() - kills,
        "operations": writes + reads + sum(total.operations[it] for it in UNACKNOWLEDGED),
        "violations": len(total.violations),
        "mended": 0,
        **{it: total.operations[it] for it in REHEARSED if options.rehearse},
    }
    promise = "rehearsed" if options.rehearse else "durable"
    ledger.record(ledger.Run(promise, seconds, figures, options.seed))
    names = {it.__name__ for it in ALL_KILLS}
    if recoveries := [round(it.any_address, 2) for it in total.recoveries if it.fault in names]:
        ledger.record(ledger.Run("recovery", seconds, {"seconds": recoveries}, options.seed))


def describe_recoveries(total: Figures) -> list[str]:
    """Return a table of the seconds from a fault to the next acknowledged write, by kind of fault."""
    columns = "p50     p90     max"
    lines = [f"{'seconds to the next acknowledged write':44}{'any address':24}every address"]
    lines += [f"{'':36}times{columns:>22}  {columns}"]
    by_fault: dict[str, list[Recovery]] = defaultdict(list)
    for it in total.recoveries:
        by_fault[it.fault].append(it)
        by_fault["all"].append(it)
    for name, several in sorted(by_fault.items()):
        pairs = ([it.any_address for it in several], [it.every_address for it in several])
        figures = "".join(f"{figure:8.2f}" for values in pairs for figure in quantiles(values))
        lines.append(f"{name.replace('_', ' '):36}{len(several):5}{figures}")
    return lines


def quantiles(values: Iterable[float]) -> tuple[float, float, float]:
    """Return the median, the ninth decile, and the largest."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return ordered[last // 2], ordered[round(0.9 * last)], ordered[last]


if __name__ == "__main__":
    sys.exit(main())
