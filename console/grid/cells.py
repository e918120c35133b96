"""Rendering of stored values in a grid: short, and exact in every visible character."""

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

# faster than Django's escape, which also handles lazy translations
from html import escape
from typing import Final, NamedTuple, cast

from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from storage.domain.entities.previews import BINARY_PREVIEW_LENGTH, STRING_PREVIEW_LENGTH
from storage.domain.values import encoding
from storage.domain.values.edm import TICKS_PER_SECOND, Edm, EdmValue, second_text

NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})
MIXED: Final = "mix"

# characters that are invisible or change how the rest of a line looks, and what is shown instead; joiners stay,
# because scripts and emoji need them
_PICTURES: Final = {" ": "·", "\n": "↵", "\t": "⇥", "\x7f": "\u2421"} | {
    chr(code): chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)
}
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u061c\u2000-\u200b\u200e\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff\ufffe\uffff]"
)
_UNSEEN_OR_SPACE = re.compile(f" |{_UNSEEN.pattern}")
_EDGES = re.compile(r"^ +| +$|(?<= ) +")  # spaces that HTML would collapse
_JSON = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:["\[{\]\d-]|true|false|null))')


class Cell(NamedTuple):
    """The content of a cell: its markup, and its state, if any.

    The states are absent, empty, whitespace and cut.
    """

    markup: SafeString
    state: str = ""


def absent() -> Cell:
    text = _("not set")
    return Cell(SafeString(f'<span class="absent">{escape(text)}</span>'), "absent")


def draw_or_absent(value: EdmValue | None, zone: tzinfo | None = None) -> Cell:
    return absent() if value is None else draw(value, zone=zone)


def draw(value: EdmValue, size: int | None = None, zone: tzinfo | None = None) -> Cell:
    """Render a value; ``size`` is the stored size in bytes of a truncated one, ``zone`` None shows UTC."""
    type_, content = value
    if type_ is _STRING:
        return _draw_text(cast("str", content), size)
    if type_ is _DATETIME:
        return draw_time(cast("int", content), zone)
    if type_ is _BINARY:
        return _draw_binary(cast("bytes", content), size)
    text = encoding.ENCODE[type_](content)[0].strip('"')
    return Cell(SafeString(text))


# looking up a member of an enumeration takes longer than anything else that is done for a number
_STRING: Final = Edm.STRING
_DATETIME: Final = Edm.DATETIME
_BINARY: Final = Edm.BINARY


def _draw_text(text: str, size: int | None) -> Cell:
    if not text:
        return _empty(_("empty string"), '""')
    shown = text[:STRING_PREVIEW_LENGTH]
    if size is None and _is_plain(text):
        return Cell(SafeString(escape(text)))
    if text.isspace() and size is None:
        pictures = _UNSEEN_OR_SPACE.sub(_picture, shown)
        markup = f'<span class="whitespace" title="{escape(_("whitespace"))}">{pictures}</span>'
        return Cell(SafeString(markup), "whitespace")
    # escape first: neither pattern below matches inside an entity reference
    marked = _UNSEEN.sub(_picture, _EDGES.sub(_dots, escape(shown)))
    if size is None and len(text) <= STRING_PREVIEW_LENGTH:
        return Cell(SafeString(f"<bdi>{marked}</bdi>"))
    if size is None:
        size = len(text.encode(errors="surrogatepass"))
    return _cut(f"<bdi>{marked}…</bdi>", size, is_json=_JSON.match(shown) is not None)


def _is_plain(text: str) -> bool:
    return (
        len(text) <= STRING_PREVIEW_LENGTH
        and text.isascii()
        and text.isprintable()
        and text[0] != " " != text[-1]
        and "  " not in text
    )


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    return f'<span class="mark">{_PICTURES.get(character, f"U+{ord(character):04X}")}</span>'


def _dots(match: re.Match[str]) -> str:
    return f'<span class="mark">{"·" * len(match[0])}</span>'


def _draw_binary(data: bytes, size: int | None) -> Cell:
    if not data:
        return _empty(_("no bytes"), "0x")
    shown = data[:BINARY_PREVIEW_LENGTH].hex()
    if size is None and len(data) <= BINARY_PREVIEW_LENGTH:
        return Cell(SafeString(shown))
    return _cut(f"<bdi>{shown}…</bdi>", size or len(data))


def _empty(name: str, text: str) -> Cell:
    return Cell(
        SafeString(f'<span class="empty-string" title="{escape(name)}">{escape(text)}</span>'), "empty"
    )


def _cut(markup: str, size: int, *, is_json: bool = False) -> Cell:
    chip = f"{filesizeformat(size)} JSON" if is_json else filesizeformat(size)
    return Cell(SafeString(f'<span class="cut">{markup}<span class="size">{chip}</span></span>'), "cut")


# times


def draw_time(ticks: int, zone: tzinfo | None, *, with_fraction: bool = True) -> Cell:
    """Render a time to the second with optional fraction; its title has seven digits in UTC."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    shown = _local_text(seconds, zone)
    utc = second_text(seconds)
    digits = f"{fraction:07}"
    small = digits.rstrip("0") if with_fraction else ""
    if small:
        shown += f"<small>.{small}</small>"
    title = f"{utc.replace('T', ' ')}.{digits} UTC"
    return Cell(SafeString(f'<time datetime="{utc}.{digits}Z" title="{title}">{shown}</time>'))


@lru_cache(maxsize=8192)
def _local_text(seconds: int, zone: tzinfo | None) -> str:
    if zone is not None:
        try:
            return datetime.fromtimestamp(seconds, UTC).astimezone(zone).replace(tzinfo=None).isoformat(" ")
        except (OverflowError, ValueError):  # on the last day of the calendar
            pass
    return second_text(seconds).replace("T", " ")
