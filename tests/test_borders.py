"""Private modules of other packages: each is used in one file only, and the package's version has an upper limit."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest

from tests.live_server import ROOT

# by package: its private modules, and the only file that imports them
BORDERS = {
    "uvicorn": (re.compile(r"uvicorn\.(?!config$)"), "storage/protocol/uvicorn_parts.py"),
    "django-allauth": (re.compile(r"allauth\..*\binternal\b"), "console/site/allauth_parts.py"),
}


@cache
def imported(text: str) -> tuple[str, ...]:
    """Return the modules and names that a source imports."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return tuple(names)


def users(private: re.Pattern[str]) -> set[str]:
    """Files of the product that import a private module."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in ("console", "storage")
        for path in (ROOT / package).rglob("*.py")
        if any(private.match(name) for name in modules(path.read_text()))
    }


def modules(text: str) -> Iterator[str]:
    """Yield imported modules; a name imported from a package may be a module, or a class with a capital letter."""
    return (name for name in imported(text) if name.rpartition(".")[2].islower())


@pytest.mark.parametrize("package", BORDERS)
def test_private_modules_are_imported_in_one_file(package):
    private, file = BORDERS[package]
    assert users(private) == {file}


@pytest.mark.parametrize("package", BORDERS)
def test_versions_have_an_upper_limit(package):
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    [wanted] = [it for it in dependencies if re.match(rf"{package}\b", it)]
    assert re.search(r">=[\d.]+,<[\d.]+$", wanted), wanted
