"""The house as data: the layers of the import contracts, and the folders of each subject on every floor."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Final

from storage.core.registry import SUBJECTS
from tests.live_server import ROOT

# floor → folders or files that a subject may have there
FLOORS: Final = {
    "storage": ("storage/{name}",),
    "console": ("console/{name}",),
    "templates": ("templates/console/{name}",),
    "static": ("static/console/{name}",),
    "tests": ("tests/{name}",),
    "docs": ("docs/{page}.md",),
}
PRODUCT: Final = ("console", "static", "storage", "tablero_server", "templates")


def layers(container: str, root: Path = ROOT) -> list[list[str]]:
    """Return the modules of a package by layer, from the top, as its import contract orders them."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [contract] = [one for one in contracts if one.get("containers") == [container]]
    return [re.split(r" *[|:] *", layer) for layer in contract["layers"]]


def engine_layers() -> list[list[str]]:
    """Return the layers of ``storage`` without subjects, from the top."""
    kept = ([name for name in layer if name not in SUBJECTS] for layer in layers("storage"))
    return [layer for layer in kept if layer]


def rooms(name: str, root: Path = ROOT) -> dict[str, list[Path]]:
    """Return the rooms of a subject that exist, by floor."""
    places = {
        floor: [root / path.format(name=name, page=name.replace("_", "-")) for path in paths]
        for floor, paths in FLOORS.items()
    }
    existing = {floor: [path for path in paths if _is_room(path)] for floor, paths in places.items()}
    return {floor: paths for floor, paths in existing.items() if paths}


def _is_room(path: Path) -> bool:
    """Return whether there is a file, or a folder that has more than what Python left of modules that are gone."""
    return path.is_file() or any(file.is_file() and file.suffix != ".pyc" for file in path.rglob("*"))


def source_of(package: str, name: str, root: Path = ROOT) -> Path:
    """Return the file that has the docstring of a module or package."""
    folder = root / package / name
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def describe(package: str, name: str, root: Path = ROOT) -> str:
    """Return the first sentence of a docstring; empty if there is none."""
    docstring = ast.get_docstring(ast.parse(source_of(package, name, root).read_text("utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) ", paragraph)[0]
