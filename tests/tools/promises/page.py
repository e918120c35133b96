"""The table of promises in docs/reliability.md."""

from collections.abc import Sequence
from typing import Final

from tests.live_server import ROOT
from tests.tools.promises.ledger import BUSY, HOUR, MINUTE, Promise, Run, total

PAGE: Final = ROOT / "docs/reliability.md"
_BEGIN: Final = "## Promises\n"
_END: Final = "## What is not promised\n"
_HEAD: Final = """
| promise | proved by | length | seeds | figures | days |
|---|---|---|---|---|---|
"""
_NOT_RUN: Final = "not run since it was written"


def with_table(page: str, table: str) -> str:
    """Return the page with another table."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{table}\n{_END}{after}"


def table(promises: Sequence[Promise], runs: Sequence[Run]) -> str:
    return _HEAD + "".join(
        f"{_row(it, [run for run in runs if run.promise == it.name])}\n" for it in promises
    )


def _row(promise: Promise, runs: Sequence[Run]) -> str:
    cells = [
        " ".join(promise.text.split()),
        promise.program if promise.program.startswith("the same") else f"`{promise.program}`",
        _length(runs),
        _span([run.seed for run in runs if run.seed is not None]),
        " ".join(promise.figure.format_map(total(runs)).split()) if runs else _NOT_RUN,
        _span([run.day for run in runs]),
    ]
    return f"| {' | '.join(cells)} |"


def _length(runs: Sequence[Run]) -> str:
    seconds = sum(run.seconds for run in runs)
    if not runs:
        return ""
    length = f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / MINUTE:.0f} min"
    if seconds < MINUTE:
        length = f"{seconds:.0f} s"
    pieces = f", {len(runs)} pieces" if len(runs) > 1 else ""
    busy = ", busy machine" if any(run.load > BUSY for run in runs) else ""
    return f"{length}{pieces}{busy}"


def _span(values: Sequence[int] | Sequence[str]) -> str:
    """Return the first and the last of values; all, if they are few."""
    known = sorted(set(values))
    return ", ".join(map(str, known)) if len(known) <= 3 else f"{known[0]} to {known[-1]}"
