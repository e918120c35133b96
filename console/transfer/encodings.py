"""Encoding names, and samples of a file in several encodings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.tabular.encodings import ENCODINGS
from storage.tabular.layout import Layout

_FIRST: Final[Mapping[str, Promise | str]] = {
    "utf-8": "Unicode",
    "windows-1252": _("Western European"),
    "windows-1250": _("Central European"),
    "windows-1254": _("Turkish"),
    "windows-1251": _("Cyrillic"),
    "windows-1253": _("Greek"),
    "windows-1257": _("Baltic and Nordic"),
    "windows-1255": _("Hebrew"),
    "windows-1256": _("Arabic"),
    "windows-1258": _("Vietnamese"),
    "windows-874": _("Thai"),
    "shift_jis": _("Japanese"),
    "gb18030": _("Chinese (simplified)"),
    "big5": _("Chinese (traditional)"),
    "euc-kr": _("Korean"),
}
_TITLES: Final = {
    "shift_jis": "Shift_JIS",
    "macintosh": "Macintosh",
    "big5": "Big5",
    "big5-hkscs": "Big5-HKSCS",
}


def title(encoding: str) -> str:
    """Return the display name of an encoding, such as Windows-1252 or UTF-8."""
    if encoding in _TITLES:
        return _TITLES[encoding]
    for small, large in (("windows", "Windows"), ("x-mac", "Macintosh")):
        if encoding.startswith(small):
            return large + encoding.removeprefix(small).title()
    return encoding.upper()


def groups() -> list[tuple[Promise | str, list[tuple[str, str]]]]:
    """Return all encodings with titles, grouped by language."""
    groups_by_title: list[tuple[Promise | str, list[tuple[str, str]]]] = []
    for name in ENCODINGS:
        if name in _FIRST:
            groups_by_title.append((_FIRST[name], []))
        groups_by_title[-1][1].append((name, title(name)))
    return groups_by_title


def script_of(encoding: str) -> Promise | str:
    """Return the script or language group of an encoding."""
    script: Promise | str = ""
    for name in ENCODINGS:
        script = _FIRST.get(name, script)
        if name == encoding:
            return script
    return ""


@dataclass(frozen=True, slots=True)
class ReadingView:
    """Sample texts of a file in an encoding, possibly the current one."""

    encoding: str
    samples: tuple[str, ...]
    is_present: bool

    @property
    def title(self) -> str:
        return title(self.encoding)

    @property
    def script(self) -> Promise | str:
        return script_of(self.encoding)


def readings_of(layout: Layout) -> list[ReadingView]:
    return [
        ReadingView(it.encoding, it.samples, it.encoding == layout.encoding)
        for it in layout.encoding_alternatives
    ]
