"""The documents as data: their code blocks, headings and links."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.live_server import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
DOCUMENTS = [
    *PAGES,
    *sorted(DOCS.glob("contributing/*.md")),
    *sorted(ROOT.glob("*.md")),
    ROOT / "tests" / "wire" / "README.md",
]


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def blocks(document: Path, language: str) -> list[str]:
    """Return the fenced code blocks of a language, in the order of the document."""
    return [token.content for token in _tokens(document) if token.type == "fence" and token.info == language]


def links(document: Path) -> list[str]:
    """Return the targets of all links and pictures.

    Pictures are HTML, because the code host has two themes.
    """
    inline = [child for token in _tokens(document) for child in token.children or []]
    return [
        *(str(child.attrs["href"]) for child in inline if child.type == "link_open"),
        *re.findall(r'(?:src|srcset)="([^"]+)"', document.read_text("utf-8")),
    ]


def anchors(document: Path) -> set[str]:
    """Return the anchors of the headings, as code hosts write them."""
    tokens = _tokens(document)
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def rows(document: Path, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, as Markdown, without the table's head."""
    text = document.read_text("utf-8").partition(f"# {heading}\n")[2]
    lines = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert lines is not None, f"{name_of(document)} has no table below {heading}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1].splitlines()]


@cache
def _tokens(document: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(document.read_text("utf-8"))
