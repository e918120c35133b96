"""Search of the documentation: titles, headings and text, with the words around each match."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from console.help import contents, documents
from console.help.contents import Place
from storage.home.search import fold

MOST: Final = 50  # results that are shown
_AROUND: Final = 90  # characters before and after the first match
_OTHERS: Final = 9  # rank of a section whose passages have all words only together


class Part(NamedTuple):
    """Part of an excerpt; ``is_match`` if it is one of the words."""

    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """Document or section that has all words; ``excerpt`` is from its text, and empty if only its title has them."""

    place: Place
    excerpt: Sequence[Part] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """Paragraph, item of a list, row of a table, or code; ``folded`` is its text without case and diacritics."""

    text: str
    folded: str


@dataclass(frozen=True, slots=True)
class Section:
    """Text below a heading, up to the next one; without a heading, the text below the title of the document."""

    heading: documents.Heading | None
    passages: Sequence[Passage]
    folded: str  # all passages


def find(text: str) -> list[SearchMatch]:
    """Return the documents and sections that have all words, at their beginnings: first those with them in titles."""
    words = fold(text).split()
    if not words:
        return []
    ranked = sorted(_matches(words), key=lambda it: it[0])
    return [match for _, match in ranked]


def _matches(words: Sequence[str]) -> Iterator[tuple[int, SearchMatch]]:
    expressions = [re.compile(rf"(?<![^\W_]){re.escape(word)}") for word in words]
    phrase = " ".join(words)
    for name, entry in contents.entries().items():
        title, original = str(entry.title), entry.original_title
        titles = fold(f"{title} {original}")
        if all(word in titles for word in words):
            yield 0, SearchMatch(Place(title, name, within=original if original != title else ""))
        for section in sections(name):
            heading = fold(section.heading.title) if section.heading else ""
            if section.heading is None:
                place = Place(title, name)
            else:
                place = Place(section.heading.title, name, section.heading.anchor, title)
            is_named = all(word in f"{heading} {titles}" for word in words)
            if is_named and any(word in heading for word in words):
                yield 1, SearchMatch(place, _excerpt(section, expressions, phrase))
            elif all(it in section.folded or it in heading or it in titles for it in words) and (
                rank := _rank(section, f"{heading} {titles}", expressions, phrase)
            ):
                yield rank, SearchMatch(place, _excerpt(section, expressions, phrase))


def _rank(section: Section, titles: str, expressions: Sequence[re.Pattern[str]], phrase: str) -> int:
    """Return how near to each other the words are, the nearest first; 0 if a word is missing, or only in titles."""
    numbers = [sum(it.search(one.folded) is not None for it in expressions) for one in section.passages]
    if not any(numbers):
        return 0
    if any(phrase in one.folded for one in section.passages) and max(numbers) == len(expressions):
        return 2
    if max(numbers) == len(expressions):
        return 3
    whole = f"{titles}\n{section.folded}"
    return _OTHERS if all(it.search(whole) for it in expressions) else 0


def _excerpt(section: Section, expressions: Sequence[re.Pattern[str]], phrase: str) -> Sequence[Part]:
    """Return the text around the words in the passage that has most of them, marked."""

    def order(passage: Passage) -> tuple[int, bool]:
        return sum(it.search(passage.folded) is not None for it in expressions), phrase in passage.folded

    best = max(section.passages, key=order, default=None)
    if best is None or order(best)[0] == 0:
        return ()
    origins = _origins(best.text)
    spans = sorted(
        (origins[match.start()], origins[match.end() - 1] + 1)
        for it in expressions
        for match in it.finditer(best.folded)
    )
    at = best.folded.find(phrase)
    first = origins[at] if at >= 0 else spans[0][0]
    start = 0 if first <= _AROUND else best.text.rfind(" ", 0, first - _AROUND // 2) + 1
    end = len(best.text)
    if end > first + 2 * _AROUND:
        space = best.text.rfind(" ", first + _AROUND, first + 2 * _AROUND)
        end = space if space > 0 else first + 2 * _AROUND
    parts = [Part("… ", is_match=False)] if start else []
    position = start
    for left, right in spans:
        if left < position or right > end:
            continue
        parts += [Part(best.text[position:left], is_match=False), Part(best.text[left:right], is_match=True)]
        position = right
    parts.append(Part(best.text[position:end] + (" …" if end < len(best.text) else ""), is_match=False))
    return [part for part in parts if part.text]


def _origins(text: str) -> list[int]:
    """Return for each character of the folded text where it comes from."""
    return [number for number, letter in enumerate(text) for _ in fold(letter)]


@cache
def sections(name: str) -> Sequence[Section]:
    """Return the text of a document, read without a rendering like its headings."""
    made: list[Section] = []
    passages: list[Passage] = []
    heading: documents.Heading | None = None
    for text in _passages((documents.ROOT / f"{name}.md").read_text("utf-8")):
        match = re.fullmatch(r"(#+) (.+)", text)
        if match is None:
            plain = _plain(text)
            if plain:
                folded = plain.lower() if plain.isascii() else "".join(map(fold, plain))
                passages.append(Passage(plain, folded))
            continue
        made.append(_section(heading, passages))
        heading = documents.Heading(len(match[1]), match[2].replace("`", "")) if len(match[1]) > 1 else None
        passages = []
    made.append(_section(heading, passages))
    return [section for section in made if section.heading or section.passages]


def _section(heading: documents.Heading | None, passages: Sequence[Passage]) -> Section:
    return Section(heading, passages, "\n".join(one.folded for one in passages))


_STARTS: Final = re.compile(r"#+ |[-*] |\d+\. |\|")  # a heading, an item of a list, or a row of a table
_FENCE: Final = "```"


def _passages(markdown: str) -> Iterator[str]:
    """Yield headings, paragraphs, items of lists, rows of tables, and code line by line."""
    collected: list[str] = []
    is_code = False
    for line in markdown.splitlines():
        stripped = line.strip()
        is_fence = stripped.startswith(_FENCE)
        if is_fence or is_code or not stripped or _STARTS.match(stripped):
            if collected:
                yield " ".join(collected)
            collected = []
        if is_fence:
            is_code = not is_code
        elif is_code:
            yield f"    {stripped}"  # a comment of a shell is no heading
        elif stripped:
            collected.append(stripped)
    if collected:
        yield " ".join(collected)


def _plain(text: str) -> str:
    """Return a passage without its markup."""
    if text.startswith("    "):
        return text.strip()
    if text.startswith("<") or re.fullmatch(r"[|\-: ]+", text):
        return ""
    if text.startswith("|"):
        text = " · ".join(cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1] if cell.strip())
    text = re.sub(r"^(?:[-*]|\d+\.) ", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`|\*\*|(?<!\w)[*_](?=\w)|(?<=[\w.])[*_](?!\w)", "", text).strip()
