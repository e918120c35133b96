"""The page of promises is written from the records, and its programs exist."""

import importlib.util
import re

import pytest

from tests.live_server import ROOT
from tests.tools.promises import page
from tests.tools.promises.ledger import Promise, Run, read_promises, read_runs, record, total

PROMISE = Promise(
    "kept", "It is\nkept.", "python3 -m some.program", "{kills:,} kills, {most waited} s; {seconds}"
)


def run(kills, *, waited=1.0, samples=(0.5,), **fields):
    figures = {"kills": kills, "most waited": waited, "seconds": list(samples)}
    return Run("kept", 90.0, figures, day="2026-11-30", **fields)


def test_the_page_is_what_the_records_say():
    table = page.table(read_promises(), read_runs())
    written = page.PAGE.read_text("utf-8")
    assert page.with_table(written, table) == written, "run: python3 -m tests.tools.promises"


def test_every_run_is_of_a_promise():
    assert {it.promise for it in read_runs()} <= {it.name for it in read_promises()}


@pytest.mark.parametrize("promise", read_promises(), ids=lambda it: it.name)
def test_programs_exist(promise):
    for module in re.findall(r"python3 -m (\S+)", promise.program):
        assert importlib.util.find_spec(module)
    for path in re.findall(r"tests/\S+", promise.program):
        assert (ROOT / path).exists()


def test_pieces_add_up():
    figures = total([run(10, waited=2.0, samples=[0.1, 0.2]), run(5, waited=3.0, samples=[0.9])])
    assert (figures["kills"], figures["most waited"]) == (15, 3.0)
    assert figures["seconds"] == "0.2 s (median), 0.9 s (90 %), 0.9 s (most)"


def test_a_row_has_all_pieces():
    row = page.table([PROMISE], [run(1000, seed=3), run(5, seed=1, load=9.0)]).splitlines()[-1]
    assert row == (
        "| It is kept. | `python3 -m some.program` | 3 min, 2 pieces, busy machine | 1, 3 "
        "| 1,005 kills, 1.0 s; 0.5 s (median), 0.5 s (90 %), 0.5 s (most) | 2026-11-30 |"
    )


def test_a_promise_without_runs_says_so():
    assert page._NOT_RUN in page.table([PROMISE], [])


def test_records_are_kept_with_their_commit(tmp_path):
    path = tmp_path / "runs.jsonl"
    record(run(1), path)
    record(run(2), path)
    first, second = read_runs(path)
    assert first.commit == second.commit and second.figures["kills"] == 2
