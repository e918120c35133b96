"""Time that tests wait for Tablero: `python3 -m tests.tools.bench.fixtures`, half a minute on a quiet machine.

A run of tests with an empty cache, and others that find it filled: from joining the run to the first account, and what
each account after it takes. The docs name these figures in testing.md.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

from tablero_server import testing
from tests.tools.bench import report
from tests.tools.bench.servers import scratch_folder

ACCOUNTS = 20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.bench.fixtures", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of runs with a filled cache, default 5")
    options = parser.parse_args(arguments)
    with scratch_folder() as folder:
        cache = folder / "cache"
        cache.mkdir(mode=0o711)  # root's PostgreSQL is another user's
        os.environ["XDG_CACHE_HOME"] = str(cache)
        first = measure(folder, "first")
        later = [measure(folder, f"later {number}") for number in range(options.rounds)]
    rows = [
        ["first run, until the first account", *row_of([first[0]])],
        ["later runs, until the first account", *row_of([start for start, _ in later])],
        ["each further account", *row_of([account for _, account in later])],
    ]
    lines = report.table(["seconds", "median", "most"], rows)
    sys.stdout.write("\n".join([*lines, "", f"load average {os.getloadavg()[0]:.1f}", ""]))
    return 0


def row_of(seconds: list[float]) -> list[str]:
    return [f"{median(seconds):.2f}", f"{max(seconds):.2f}"]


def measure(folder: Path, run: str) -> tuple[float, float]:
    """Return the seconds until a process that joins a run has its first account, and those for each further account."""
    began = time.perf_counter()
    with testing.join(f"{folder} {run}") as service:
        service.create_account()
        started = time.perf_counter()
        for _ in range(ACCOUNTS):
            service.create_account()
        return started - began, (time.perf_counter() - started) / ACCOUNTS


if __name__ == "__main__":
    sys.exit(main())
