"""Lines of product code by room: ``python3 -m tests.lines`` prints a table.

Python counts without migrations, and vendored libraries are left out. Code of a subject that is still in folders by
layer counts there, for example in storage/runtime.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from storage.core.registry import SUBJECTS
from tests import rooms
from tests.live_server import ROOT

KINDS: Final = ("Python", "templates", "JavaScript", "CSS")
ENGINE: Final = (
    "server",
    "protocol",
    "runtime",
    "sql",
    "domain",
)  # packages that a request of the Table service crosses
_HEAD: Final = ("room", *KINDS, "all")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the table: its rooms, and lines by kind in each of them."""

    title: str
    rooms: dict[str, Counter[str]] = field(default_factory=dict)

    def total(self) -> Counter[str]:
        return sum(self.rooms.values(), Counter())


def count_lines(root: Path = ROOT) -> list[Section]:
    """Count each file of the product once, in the room that has it."""
    layers = [name for layer in rooms.engine_layers() for name in layer if name not in {*ENGINE, "core"}]
    others = [name for layer in rooms.layers("console") for name in layer if name not in SUBJECTS]
    sections = [
        Section("engine", {f"storage/{name}": Counter() for name in ENGINE}),
        Section("core", {"storage/core": Counter()}),
        Section("subjects", {name: Counter() for name in reversed(SUBJECTS)}),
        Section("storage by layer", {f"storage/{name}": Counter() for name in layers}),
        Section("console without subjects", {f"console/{name}": Counter() for name in others}),
        Section("the rest", {}),
    ]
    by_name = {name: counts for section in sections for name, counts in section.rooms.items()}
    for path in _product_files(root):
        relative = PurePosixPath(path.relative_to(root).as_posix())
        if kind := kind_of(relative):
            name = room_of(relative, by_name)
            counts = by_name[name] if name in by_name else sections[-1].rooms.setdefault(name, Counter())
            counts[kind] += len(path.read_bytes().splitlines())
    return sections


def kind_of(path: PurePosixPath) -> str:
    """Return the kind of a file of the product; empty if its lines do not count."""
    if "vendor" in path.parts or "migrations" in path.parts:
        return ""
    if path.parts[0] == "templates":
        return "templates"
    return {".py": "Python", ".js": "JavaScript", ".css": "CSS"}.get(path.suffix, "")


def room_of(path: PurePosixPath, known: Iterable[str]) -> str:
    """Return the subject, layer or folder of the console that has a file; otherwise its folder at the top."""
    top, *below = path.parts
    if top in ("static", "templates") and below[0] == "console":
        top, below = "console", below[1:]
    name = below[0].removesuffix(".py")
    candidates = (name, f"{top}/{name}") if top in ("console", "storage") else ()
    return next((candidate for candidate in candidates if candidate in known), path.parts[0])


def _product_files(root: Path) -> Iterator[Path]:
    for folder in rooms.PRODUCT:
        yield from (
            path
            for path in sorted((root / folder).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        )


def write_table(sections: Iterable[Section]) -> str:
    rows: list[tuple[str, Mapping[str, int]]] = []
    total: Counter[str] = Counter()
    for section in sections:
        rows.append((section.title, section.total()))
        rows += [(f"  {name}", counts) for name, counts in section.rooms.items() if counts]
        total += section.total()
    rows.append(("all", total))
    lines = [f"{_HEAD[0]:28}" + "".join(f"{column:>12}" for column in _HEAD[1:])]
    for name, counts in rows:
        figures = [*(counts[kind] for kind in KINDS), sum(counts.values())]
        lines.append(
            f"{name:28}" + "".join(f"{figure or '':>12,}" if figure else " " * 12 for figure in figures)
        )
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    sys.stdout.write(write_table(count_lines()) + "\n")
