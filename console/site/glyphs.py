"""Marks of the EDM types: two letters and a colour."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy


@dataclass(frozen=True, slots=True)
class Glyph:
    text: str
    ink: str
    name: object  # a string, or one to be translated


GLYPHS: Final = {
    "Edm.String": Glyph("Ab", "", "String"),
    "Edm.Int32": Glyph("32", "num", "Int32"),
    "Edm.Int64": Glyph("64", "num", "Int64"),
    "Edm.Double": Glyph(".0", "num", "Double"),
    "Edm.Boolean": Glyph("TF", "bool", "Boolean"),
    "Edm.DateTime": Glyph("Dt", "date", "DateTime"),
    "Edm.Guid": Glyph("Gd", "guid", "Guid"),
    "Edm.Binary": Glyph("Bn", "bin", "Binary"),
    "mix": Glyph("mix", "mix", gettext_lazy("mixed types")),
}


def mark(type_: str) -> SafeString:
    """Render the mark of an EDM type, or of mixed types."""
    return _mark(type_, get_language())


@lru_cache(maxsize=64)
def _mark(type_: str, language: str | None) -> SafeString:
    glyph = GLYPHS[type_]
    return format_html('<abbr class="type {}" title="{}">{}</abbr>', glyph.ink, str(glyph.name), glyph.text)
