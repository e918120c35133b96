"""Styles of pages take colours, fonts and spaces from the tokens; what has its own look is a component in site/."""

import re

import pytest

from console.site.static_files import CONSOLE

PAGES = [path for path in sorted(CONSOLE.rglob("*.css")) if path.relative_to(CONSOLE).parts[0] != "site"]
# properties defined by the tokens, or set by components and scripts
PROPERTIES = {
    name
    for path in (*CONSOLE.rglob("*.css"), *CONSOLE.rglob("*.js"))
    for name in re.findall(r"(--[\w-]+)[\":]", path.read_text())
}
DECLARATION = re.compile(r"(?<=[{;])\s*([\w-]+)\s*:\s*([^;{}]+)")
COLOUR = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|oklch|lab|light-dark)\(|\b(?:white|black|red|gr[ae]y)\b",
    re.IGNORECASE,
)
COLOURED = re.compile(r"color$|^(?:background|border|outline|box-shadow|fill|stroke|text-decoration)")
SPACED = re.compile(r"^(?:padding|margin|gap|row-gap|column-gap)")
PIXELS = re.compile(r"(?<![\w.-])-?(\d+)px")
WEIGHTS = {"400", "450", "500", "650", "inherit"}


def problem_of(name, value):
    """Say what a declaration should take from the tokens, or nothing."""
    if COLOURED.search(name) and COLOUR.search(value):
        return "a colour"
    # hairlines are not on the scale, nor are offsets of positioned elements
    if SPACED.match(name) and any(1 < int(px) < 100 for px in PIXELS.findall(value)):
        return "a space"
    if name == "font" and not re.fullmatch(r"var\(--[\w-]+\)|inherit", value):
        return "a font"
    if name == "font-size" and "px" in value:
        return "a size of letters"
    if name == "line-height" and any(int(px) % 4 for px in PIXELS.findall(value)):
        return "a height of lines, in steps of 4 px"
    if name == "font-weight" and value not in WEIGHTS:
        return "a weight"
    return ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(CONSOLE).as_posix())
def test_pages_take_their_look_from_the_tokens(path):
    style = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    results = [(name, value.strip()) for name, value in DECLARATION.findall(style)]
    assert [(*it, problem) for it in results if (problem := problem_of(*it))] == []
    assert set(re.findall(r"var\((--[\w-]+)\)", style)) <= PROPERTIES


@pytest.mark.parametrize(
    ("declaration", "problem"),
    [
        ("color: #fff", "a colour"), ("border: 1px solid red", "a colour"), ("background: var(--surface)", ""),
        ("padding: 7px var(--space-2)", "a space"), ("margin: -4px 0", "a space"), ("gap: 1px", ""),
        ("padding: calc(var(--bar) + var(--space-2))", ""), ("font: 500 13px/20px var(--sans)", "a font"),
        ("font: var(--small)", ""), ("font-weight: 600", "a weight"), ("font-size: 13px", "a size of letters"),
        ("font-size: 0.92em", ""), ("line-height: 22px", "a height of lines, in steps of 4 px"),
        ("line-height: 24px", ""),
    ],
)  # fmt: skip
def test_problems_of_declarations(declaration, problem):
    name, _, value = declaration.partition(": ")
    assert problem_of(name, value) == problem


# a part of a selector that depends on :has, and what it styles beside itself
DEPENDENT = re.compile(r":has\([^{};]*\)[^{};,]*[\s>+~]([\w*:][^\s>+~{};,]*)\s*[{,]")


def test_no_cell_depends_on_what_is_somewhere_on_the_page():
    """Otherwise browsers style all cells of a grid again whenever anything is added, ticked, hidden or shown."""
    styles = [path.read_text() for path in CONSOLE.rglob("*.css")]
    subjects = {subject for style in styles for subject in DEPENDENT.findall(style)}
    assert "label" in subjects
    assert not {it for it in subjects if re.match(r"(:is\()?(\*|td\b|th\b)(?!\[)|:not\(", it)}
    assert not any("* + *" in style or "* ~ *" in style for style in styles)
