"""Finds phrases of `patterns.toml` in docstrings, comments and documents, and names in functions that say nothing."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from tests.live_server import ROOT

FOLDER = Path(__file__).parent
SOURCES = (
    "manage.py", "console", "storage", "tablero_server", "tests",
    "static", "docs", "README.md", "CONTRIBUTING.md",
)  # fmt: skip
SKIPPED = ("migrations", "vendor", "locale", "node_modules")
BLOCK_COMMENTS = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
# a tokenizer would take ten times as long; the comment is the only group
STRINGS_AND_COMMENTS = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'{3}(?:[^\\]|\\.)*?\'{3}|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|(#[^\n]*)''',
    re.DOTALL,
)
CODE = re.compile(r"```.*?```|~~~.*?~~~|`[^`\n]+`", re.DOTALL)
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

VAGUE_NAMES = frozenset({"found", "wanted"})
VAGUE_WORDS = re.compile(rf"\b(?:{'|'.join(sorted(VAGUE_NAMES))})\b")
SHORT_FUNCTION = 5  # lines in which a reader sees at a glance what a vague name holds
VAGUE = f"Name {{!r}} by what it is: the function has more than {SHORT_FUNCTION} lines."
AROUND = 50  # characters of a text that are shown on each side of a phrase


@dataclass(frozen=True)
class Pattern:
    """A phrase to avoid, as `patterns.toml` declares it."""

    name: str
    regex: re.Pattern[str]
    message: str
    finds: str  # an example
    leaves: str  # a similar sentence without the phrase
    kinds: frozenset[str]  # kinds of prose; empty: all


@dataclass(frozen=True)
class Prose:
    """A docstring, a comment or a paragraph, on one line."""

    path: str
    line: int
    kind: str  # docstring, class, comment or document
    text: str


@dataclass(frozen=True)
class Finding:
    """A phrase or name to replace."""

    path: str
    line: int
    name: str
    message: str
    text: str


@cache
def patterns() -> tuple[Pattern, ...]:
    declared = tomllib.loads((FOLDER / "patterns.toml").read_text())["pattern"]
    return tuple(
        Pattern(
            p["name"],
            re.compile(p["regex"], re.IGNORECASE),
            p["message"],
            p["finds"],
            p["leaves"],
            frozenset(p.get("in", ())),
        )
        for p in declared
    )


# the attributes of statements that hold other ones
BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@lru_cache(maxsize=1)
def documented(source: str) -> list[Documented]:
    """Return the module, and its classes and functions, without a look into expressions."""
    nodes: list[ast.AST] = [ast.parse(source)]
    for node in nodes:
        for block in BLOCKS:
            nodes += getattr(node, block, ())
    return [node for node in nodes if isinstance(node, Documented)]


def one_line(text: str) -> str:
    return " ".join(text.split())


def docstrings(path: str, source: str) -> Iterator[Prose]:
    for node in documented(source):
        if text := ast.get_docstring(node):
            kind = "class" if isinstance(node, ast.ClassDef) else "docstring"
            yield Prose(path, node.body[0].lineno, kind, one_line(text))


def comments(path: str, source: str) -> Iterator[Prose]:
    """Yield comments; lines below each other at the same column are one."""
    line, begun, column, texts = 1, 0, 0, list[str]()
    position = 0
    for match in STRINGS_AND_COMMENTS.finditer(source):
        line += source.count("\n", position, match.start())
        position = match.start()
        if match[1] is None:
            continue
        text = match[1].lstrip("#").strip()
        start = position - source.rfind("\n", 0, position)
        if texts and line == begun + len(texts) and start == column:
            texts.append(text)
            continue
        if texts:
            yield Prose(path, begun, "comment", one_line(" ".join(texts)))
        begun, column, texts = line, start, [text]
    if texts:
        yield Prose(path, begun, "comment", one_line(" ".join(texts)))


def paragraphs(path: str, source: str) -> Iterator[Prose]:
    """Yield paragraphs and rows of tables of Markdown, without code."""
    # a block of code leaves its lines behind, so that the lines of paragraphs are right
    text = CODE.sub(lambda m: "`code`" + "\n" * m[0].count("\n"), source)
    for match in re.finditer(r"\S.*?(?=\n\s*\n|\n\||\Z)", text, re.DOTALL):
        yield Prose(path, text.count("\n", 0, match.start()) + 1, "document", one_line(match[0]))


def block_comments(path: str, source: str) -> Iterator[Prose]:
    """Yield comments of JavaScript and CSS."""
    for match in BLOCK_COMMENTS.finditer(source):
        text = re.sub(r"^\s*\*", "", match[0].strip("/*"), flags=re.MULTILINE)
        yield Prose(path, source.count("\n", 0, match.start()) + 1, "comment", one_line(text))


def prose(path: str, source: str) -> Iterable[Prose]:
    if path.endswith(".py"):
        return (*docstrings(path, source), *comments(path, source))
    if path.endswith(".md"):
        return paragraphs(path, source)
    return block_comments(path, source)


def phrases(path: str, source: str) -> Iterator[Finding]:
    """Yield phrases to avoid, at most one of each pattern in one piece of prose."""
    for part in prose(path, source):
        kinds = {part.kind, "docstring"} if part.kind == "class" else {part.kind}
        for pattern in patterns():
            if pattern.kinds and not pattern.kinds & kinds:
                continue
            if match := pattern.regex.search(part.text):
                yield Finding(path, part.line, pattern.name, pattern.message, excerpt(match))


def excerpt(match: re.Match[str]) -> str:
    """Return a phrase with the words around it."""
    start, end = max(match.start() - AROUND, 0), match.end() + AROUND
    text = match.string
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def vague_names(path: str, source: str) -> Iterator[Finding]:
    """Yield functions longer than a few lines with a local `found` or `wanted`."""
    lines = source.splitlines()
    for node in documented(source):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        body = lines[node.lineno - 1 : node.end_lineno]
        if len(body) <= SHORT_FUNCTION or not VAGUE_WORDS.search("\n".join(body)):
            continue
        assigned = {
            n.id if isinstance(n, ast.Name) else n.arg
            for n in ast.walk(node)
            if isinstance(n, ast.arg) or (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        }
        for name in sorted(assigned & VAGUE_NAMES):
            yield Finding(path, node.lineno, "vague-name", VAGUE.format(name), node.name)


def findings(path: str, source: str) -> Iterator[Finding]:
    yield from phrases(path, source)
    if path.endswith(".py"):
        yield from vague_names(path, source)


def files(sources: Iterable[str] = SOURCES) -> Iterator[str]:
    """Yield paths of files with prose, from the root of the checkout."""
    for source in sources:
        root = ROOT / source
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            name = path.relative_to(ROOT)
            if path.suffix in {".py", ".md", ".js", ".css"} and not set(SKIPPED) & set(name.parts):
                yield name.as_posix()


def all_findings(sources: Iterable[str] = SOURCES) -> Iterator[Finding]:
    for path in files(sources):
        yield from findings(path, (ROOT / path).read_text())
