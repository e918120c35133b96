"""The code map of docs/architecture.md, made from the registry of subjects and the import contracts.

``python3 -m tests.code_map`` updates it; tests/docs/test_code_map.py fails when it is outdated.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from storage.core.registry import SUBJECTS
from tests import rooms
from tests.live_server import ROOT

DOCUMENT: Final = ROOT / "docs" / "architecture.md"
_SECTION: Final = re.compile(r"(?<=^## Code map\n).*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)


def write() -> str:
    """Return the section below its heading."""
    parts = [
        "`python3 -m tests.code_map` writes this section. Layers of `storage/` without subjects, from the top:",
        _table("layer", "content", _engine()),
        "Subjects, from the top, each in `storage/NAME/`, and their other rooms:",
        _table("subject", "content", _subjects(), "rooms"),
        "Folders of `console/` without a subject:",
        _table("folder", "content", _console()),
    ]
    return "\n" + "\n".join(parts)


def insert(text: str) -> str:
    """Return the document with the present code map."""
    replaced, count = _SECTION.subn(lambda _: write(), text)
    assert count == 1, "docs/architecture.md has no section Code map"
    return replaced


def _engine() -> Iterator[tuple[str, ...]]:
    for layer in rooms.engine_layers():
        for name in layer:
            suffix = "/" if (ROOT / "storage" / name).is_dir() else ".py"
            yield f"`{name}{suffix}`", rooms.describe("storage", name)


def _subjects() -> Iterator[tuple[str, ...]]:
    for name in reversed(SUBJECTS):
        others = {floor: paths for floor, paths in rooms.rooms(name).items() if floor != "storage"}
        yield (
            f"`{name}`",
            rooms.describe("storage", name),
            ", ".join(_name_room(floor, path) for floor, paths in others.items() for path in paths),
        )


def _console() -> Iterator[tuple[str, ...]]:
    for name in (name for layer in rooms.layers("console") for name in layer):
        if name not in SUBJECTS and (ROOT / "console" / name).is_dir():
            yield f"`{name}/`", rooms.describe("console", name)


def _name_room(floor: str, path: Path) -> str:
    if floor == "docs":
        return f"[{path.stem}]({path.name})"
    return floor


def _table(first: str, second: str, rows: Iterable[tuple[str, ...]], *more: str) -> str:
    columns = (first, second, *more)
    lines = [_row(columns), "|---" * len(columns) + "|\n", *map(_row, rows)]
    return "\n" + "".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


if __name__ == "__main__":
    DOCUMENT.write_text(insert(DOCUMENT.read_text("utf-8")), "utf-8")
