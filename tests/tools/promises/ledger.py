"""Records of runs, and what the pieces of a promise amount to."""

import json
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from tests import programs
from tests.live_server import ROOT

FOLDER: Final = Path(__file__).parent
RUNS: Final = FOLDER / "runs.jsonl"
BUSY: Final = 2.5  # load above which times are those of a busy machine
MINUTE: Final = 60
HOUR: Final = 60 * MINUTE

Figure = float | Sequence[float]


@dataclass(frozen=True)
class Promise:
    name: str
    text: str
    program: str
    figure: str  # a format over the figures of all pieces


@dataclass(frozen=True)
class Run:
    """A piece: numbers add up, those named ``most …`` do not, and lists are samples of one distribution."""

    promise: str
    seconds: float
    figures: Mapping[str, Figure]
    seed: int | None = None
    day: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")
    commit: str = ""
    load: float = 0.0  # on average over the last minutes, for a machine with two cores


def read_promises() -> list[Promise]:
    content = tomllib.loads((FOLDER / "promises.toml").read_text("utf-8"))
    return [Promise(name, **fields) for name, fields in content.items()]


def read_runs(path: Path = RUNS) -> list[Run]:
    return [Run(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def record(run: Run, path: Path = RUNS) -> None:
    """Append a run, with the commit and the load of the machine."""
    _, _, load = read_load()
    commit = subprocess.run(
        [programs.get("git"), "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    filled = {**asdict(run), "commit": commit.stdout.strip(), "load": load}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(filled, ensure_ascii=False) + "\n")


def read_load() -> tuple[float, float, float]:
    one, five, fifteen = Path("/proc/loadavg").read_text().split()[:3]
    return float(one), float(five), float(fifteen)


def total(runs: Iterable[Run]) -> dict[str, Any]:
    """Return the figures of all pieces by name, a distribution as its quantiles in words."""
    results: dict[str, Any] = {}
    for run in runs:
        for name, figure in run.figures.items():
            if isinstance(figure, Sequence):
                results[name] = [*results.get(name, ()), *figure]
            elif name.startswith("most"):
                results[name] = max(results.get(name, figure), figure)
            else:
                results[name] = results.get(name, 0) + figure
    for name, samples in [(name, it) for name, it in results.items() if isinstance(it, list)]:
        cuts = quantiles([*samples, *samples], n=100)  # twice, because there may be only one
        results[name] = f"{cuts[49]:.2g} s (median), {cuts[89]:.2g} s (90 %), {max(samples):.2g} s (most)"
    return results
