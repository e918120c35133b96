"""Documentation: the Markdown pages of docs/, rendered on demand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from storage.core import registry

ROOT: Final = settings.ROOT / "docs"
INDEX: Final = "README"  # code hosts show it for the folder; in the console, the contents are in its place


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    title: str

    @property
    def anchor(self) -> str:
        """Return the anchor as code hosts generate it."""
        return re.sub(r"[^\w -]", "", self.title.lower()).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    sections: Sequence[Heading]
    content: SafeString


@cache
def sections(name: str) -> Sequence[Heading]:
    """Return the headings below the title.

    They are read without a rendering, because a search asks for the headings of all pages.
    """
    text = re.sub(
        r"^```.*?^```$", "", (ROOT / f"{name}.md").read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    headings = re.findall(r"^(##+) (.+)$", text, re.MULTILINE)
    return [Heading(len(marks), title.replace("`", "")) for marks, title in headings]


def read(name: str) -> Document:
    markdown = MarkdownIt("commonmark", renderer_cls=_Renderer).enable("table")
    tokens = markdown.parse((ROOT / f"{name}.md").read_text("utf-8"))
    title, *others = headings(tokens)
    content = markdown.renderer.render(tokens[3:], markdown.options, {})  # the title heads the whole page
    # our own pages, without the HTML in them
    return Document(title.title, [one for one in others if one.level == 2], mark_safe(content))  # noqa: S308


def headings(tokens: Sequence[Token]) -> list[Heading]:
    return [_heading(token, content) for token, content in pairwise(tokens) if token.type == "heading_open"]


def _heading(token: Token, content: Token) -> Heading:
    return Heading(int(token.tag[1]), "".join(child.content for child in content.children or []))


class _Renderer(RendererHTML):
    """Markdown renderer with the console's links, headings, tables and code."""

    def heading_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        heading = _heading(tokens[idx], tokens[idx + 1])
        return format_html('<h{} id="{}">', heading.level, heading.anchor)

    def link_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        target = str(tokens[idx].attrs["href"])
        name, is_page, anchor = target.partition(".md")
        if is_page and name in registry.missing_documents():
            return "<a>"
        if is_page and "/" not in name:
            target = reverse("help:document", args=[name]) + anchor
        return format_html('<a href="{}">', target)

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        return format_html('<pre class="snippet" tabindex="0"><code>{}</code></pre>', tokens[idx].content)

    def table_open(self, *_: Any) -> str:
        return '<div class="scroller" tabindex="0"><table>'

    def table_close(self, *_: Any) -> str:
        return "</table></div>"

    def html_block(self, *_: Any) -> str:
        """Omit HTML blocks, which show screenshots for readers outside the console."""
        return ""

    def html_inline(self, *_: Any) -> str:
        return ""
