"""Comments, docstrings and documents are in plain English: without the marks of a dialect that the code once had."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.live_server import ROOT

# a subject that a reader would search for says more than any of these
MARKS = re.compile(
    r"\b(?:anew|for ever|whoever|nobody|somebody|what there is|(?:tells?|told) of)\b", re.IGNORECASE
)
ALLOWED = {
    ("docs/options.md", "nobody"),  # a user of the operating system
    ("docs/operations.md", "nobody"),
}
SOURCES = ("manage.py", "console", "storage", "static/console", "docs", "README.md", "CONTRIBUTING.md")
COMMENTS = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose_of_python(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED):
            yield ast.get_docstring(node) or ""


PROSE: dict[str, Callable[[str], Iterable[str]]] = {
    ".py": prose_of_python,
    ".js": COMMENTS.findall,
    ".css": COMMENTS.findall,
    ".md": lambda text: (text,),
}


def prose(path: Path) -> Iterable[str]:
    read = PROSE.get(path.suffix)
    return () if read is None else read(path.read_text())


def files() -> Iterator[Path]:
    for name in SOURCES:
        source = ROOT / name
        yield from source.rglob("*") if source.is_dir() else (source,)


def marks(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    found = [mark.lower() for part in prose(path) for mark in MARKS.findall(part)]
    return [f"{name}: {mark}" for mark in found if (name, mark) not in ALLOWED]


def test_sources_are_in_plain_english():
    assert [mark for path in files() if path.is_file() for mark in marks(path)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""Whoever reads."""'),
        ("a.py", "x = 1  # made anew"),
        ("a.js", "let x; // nobody asked"),
        ("a.css", "/* for ever */"),
        ("a.md", "It tells of tables."),
    ],
)
def test_finds_marks(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert [mark for part in prose(tmp_path / name) for mark in MARKS.findall(part)]


def test_leaves_values_alone(tmp_path):
    (tmp_path / "a.py").write_text('user = "nobody"')
    (tmp_path / "a.js").write_text('const user = "nobody"; const site = "https://nobody.example";')
    assert [
        mark for name in ("a.py", "a.js") for part in prose(tmp_path / name) for mark in MARKS.findall(part)
    ] == []
