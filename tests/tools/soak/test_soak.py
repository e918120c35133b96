"""The soak test: a short piece of it, and that it finds drift and reports no stable value."""

import pytest

from tests.seeds import seeded
from tests.tools.soak import figures
from tests.tools.soak.__main__ import main
from tests.tools.soak.figures import Sample

MEMORY = "memory of the server, MB"


def piece(number=1, *, memory=lambda minute: 300 + minute % 7, errors=None):
    """Return an hour with a sample each minute; the first minutes need more and more."""
    return [
        Sample(
            number,
            number - 1 + minute / 60,
            {MEMORY: memory(minute) if minute > 15 else 10.0 * minute},
            errors or {},
        )
        for minute in range(60)
    ]


def test_stable_values_are_not_problems():
    assert figures.problems([*piece(1), *piece(2)]) == []


def test_a_leak_is_found_in_its_piece():
    result = figures.problems([*piece(1), *piece(2, memory=lambda minute: 300 + 3 * minute)])
    assert len(result) == 1 and result[0].startswith(f"{MEMORY} grew by") and "piece 2" in result[0]


def test_errors_are_problems():
    assert figures.problems(piece(errors={"api: 500": 2})) == ["120 times api: 500"]


@pytest.mark.slow
def test_another_piece_goes_on(scratch, capsys):
    folder = scratch / "soak"
    folder.mkdir(mode=0o711)
    seeded(folder / "tablero")
    figures.append(folder / "figures.jsonl", Sample(1, 2.0, {MEMORY: 300.0}))

    assert main(["--hours", "0.001", "--seconds", "2", "--folder", str(folder)]) == 0, capsys.readouterr().out

    samples = figures.read(folder / "figures.jsonl")
    assert samples[-1].piece == 2 and samples[-1].hours > 2.0
    assert "get: requests" in samples[1].values
    assert "2 pieces" in capsys.readouterr().out and (folder / "figures.svg").exists()
