"""Translation catalogues: parsing, missing entries and updates."""

import gettext
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import django
from django.conf import settings
from django.utils.translation import to_locale

_ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = ("console", "storage", "templates")  # the folders with texts
FOLDER: Final = _ROOT / "console" / "locale"
SOURCE: Final = "en"  # the texts in the source

_HEADER: Final = """# Strings of Tablero's console. English is in the source.
msgid ""
msgstr ""
"Report-Msgid-Bugs-To: \\n"
"Language: {}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {};\\n"
"""
_TOOLS: Final = ("xgettext", "msgfmt")
_WIDTH: Final = 120
_FUZZY: Final = "fuzzy"
_LINE: Final = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s+)?"(.*)"\s*')


class CatalogueError(Exception):
    """Error in a catalogue or its tools; the text is a sentence."""


class Message(NamedTuple):
    """Source message, identified also by ``context`` and ``plural``."""

    text: str
    context: str | None = None
    plural: str | None = None


@dataclass(slots=True)
class Entry:
    """Message with its translations, one per plural form.

    ``lines`` are its source lines; ``number`` is the first line's number in the file.
    """

    message: Message
    translations: list[str]
    flags: frozenset[str]
    comments: list[str]  # for translators
    number: int
    lines: list[str] = field(default_factory=list)

    @property
    def is_translated(self) -> bool:
        return all(self.translations) and _FUZZY not in self.flags


def read(text: str) -> list[Entry]:
    """Parse a catalogue without header and obsolete messages; raises CatalogueError."""
    entries = []
    for number, lines in _blocks(text):
        parts: dict[str, str] = {}
        keyword = ""
        for place, line in enumerate(lines, number):
            if line.startswith("#"):
                continue
            match = _LINE.fullmatch(line)
            if match is None or not (match[1] or keyword):
                raise CatalogueError(f"The line {place} is not one of a catalogue: {line}")
            keyword = match[1] or keyword
            parts[keyword] = ("" if match[1] else parts[keyword]) + match[2]
        if parts.get("msgid"):
            message = Message(parts["msgid"], parts.get("msgctxt"), parts.get("msgid_plural"))
            flags = {flag.strip() for line in lines if line.startswith("#,") for flag in line[2:].split(",")}
            comments = [line for line in lines if line.startswith("#.")]
            translations = [value for name, value in parts.items() if name.startswith("msgstr")]
            entries.append(Entry(message, translations, frozenset(flags), comments, number, lines))
    return entries


def _blocks(text: str) -> Iterable[tuple[int, list[str]]]:
    """Yield the lines of each entry with the first line number; blank lines between entries are optional."""
    block: list[str] = []
    is_complete = False
    for number, line in enumerate(text.splitlines(), 1):
        begins = is_complete and not line.startswith(('"', "msgstr"))
        if block and (not line.strip() or begins):
            yield number - len(block), block
            block, is_complete = [], False
        if line.strip() and not line.startswith("#~"):
            block.append(line)
            is_complete = is_complete or line.startswith("msgstr")
    if block:
        yield len(text.splitlines()) + 1 - len(block), block


def write(message: Message, flags: Iterable[str], comments: Iterable[str], forms: int) -> str:
    """Format an untranslated message."""
    lines = [*comments, *([f"#, {', '.join(sorted(flags))}"] if flags else [])]
    if message.context is not None:
        lines += _write("msgctxt", message.context)
    lines += _write("msgid", message.text)
    if message.plural is None:
        lines.append('msgstr ""')
    else:
        lines += _write("msgid_plural", message.plural)
        lines += [f'msgstr[{form}] ""' for form in range(forms)]
    return "\n".join(lines)


def _write(keyword: str, text: str) -> list[str]:
    *ended, rest = re.split(r"(?<=\\n)", text)
    lines = [line for line in (*ended, rest) if line]
    if len(lines) <= 1 and len(f'{keyword} "{text}"') <= _WIDTH:
        return [f'{keyword} "{text}"']
    return [f'{keyword} ""', *(f'"{part}"' for line in lines for part in _wrap(line))]


def _wrap(line: str) -> Iterable[str]:
    part = ""
    for word in re.findall(r"\S*\s*", line):
        if part and len(part) + len(word) > _WIDTH - 2:
            yield part
            part = ""
        part += word
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class Update:
    """Updated catalogue, with the added messages, and those to translate or remove."""

    text: str
    added: Sequence[Message]
    untranslated: Sequence[Entry]
    unused: Sequence[Entry]


def update(text: str, extracted: Sequence[Entry]) -> Update:
    """Add missing source messages to a catalogue; raises CatalogueError."""
    text = _without_repeated(text)
    known = {entry.message: entry for entry in read(text)}
    forms = _forms(text)
    plurals = {(it.text, it.context): it.plural for it in known}
    added = [entry for entry in extracted if entry.message not in known]
    for entry in added:
        if plurals.get(entry.message[:2], entry.message.plural) != entry.message.plural:
            raise CatalogueError(
                f'The plural of "{entry.message.text}" is another one in the source. Remove its entry, and run the'
                " command again."
            )
    missing = [write(it.message, it.flags - {_FUZZY}, it.comments, forms) for it in added]
    text = "\n\n".join([text.rstrip("\n"), *missing]) + "\n"
    entries = read(text)
    used = {entry.message for entry in extracted}
    return Update(
        text,
        [entry.message for entry in added],
        [it for it in entries if it.message in used and not it.is_translated],
        [it for it in entries if it.message not in used],
    )


def _without_repeated(text: str) -> str:
    first: dict[tuple[str, str | None], Entry] = {}
    repeated: list[Entry] = []
    for entry in read(text):
        other = first.setdefault(entry.message[:2], entry)
        if other is entry:
            continue
        if (other.message, other.translations) != (entry.message, entry.translations):
            raise CatalogueError(
                f'"{entry.message.text}" is translated twice, in the lines {other.number} and {entry.number}. Keep one.'
            )
        repeated.append(entry)
    lines = text.splitlines()
    for entry in reversed(repeated):
        start, end = entry.number - 1, entry.number - 1 + len(entry.lines)
        has_blank = lines[end : end + 1] == [""] and (start == 0 or lines[start - 1] == "")
        del lines[start : end + has_blank]
    return "\n".join(lines) + "\n" if repeated else text


def _forms(text: str) -> int:
    match = re.search(r"nplurals=(\d+)", text)
    return int(match[1]) if match is not None else 2


def check_tools() -> None:
    """Raise CatalogueError if GNU gettext is not installed."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise CatalogueError(
            f"The command needs {' and '.join(missing)} of GNU gettext. On Debian and Ubuntu install it with: apt"
            " install gettext; on macOS with: brew install gettext"
        )


def extract(environment: Mapping[str, str]) -> list[Entry]:
    """Extract the messages of the source; raises CatalogueError."""
    check_tools()
    with tempfile.TemporaryDirectory(prefix="tablero-") as folder:
        # other processes write into __pycache__
        ignored = shutil.ignore_patterns("locale", "__pycache__")
        for name in _SOURCES:
            shutil.copytree(_ROOT / name, Path(folder, name), ignore=ignored)
        Path(folder, "locale").mkdir()
        command = [sys.executable, "-m", "django", "makemessages", "-l", SOURCE, "--no-location", "--no-wrap"]
        # without settings, which would belong to a project that does not exist
        clean = {name: value for name, value in environment.items() if name != "DJANGO_SETTINGS_MODULE"}
        _run(command, "The messages of the source cannot be read", cwd=folder, environment=clean)
        return read(_path(SOURCE, Path(folder, "locale")).read_text(encoding="utf-8"))


def locales() -> list[str]:
    """Return the locales of the console's languages, apart from the language of the source."""
    return sorted(to_locale(code) for code, _ in settings.LANGUAGES if code != SOURCE)


def load(locale: str) -> str:
    """Return a catalogue, or the header of one for a new language; raises CatalogueError for an unknown language."""
    path = _path(locale)
    return (
        path.read_text(encoding="utf-8") if path.exists() else _HEADER.format(locale, _plural_forms(locale))
    )


def _plural_forms(locale: str) -> str:
    """Return the plural forms of a language, as Django has them."""
    folder = Path(django.__file__).parent / "conf" / "locale"
    try:
        return gettext.translation("django", folder, [locale]).info()["plural-forms"]
    except (OSError, KeyError):
        raise CatalogueError(
            "Django does not know this language of LANGUAGES in console/settings.py."
        ) from None


def save(locale: str, text: str) -> None:
    path = _path(locale)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def compile_text(text: str) -> bytes:
    """Compile a catalogue to the MO format; raises CatalogueError with the message of msgfmt."""
    check_tools()
    with tempfile.TemporaryDirectory(prefix="tablero-") as folder:
        source, target = Path(folder, "django.po"), Path(folder, "django.mo")
        source.write_text(text, encoding="utf-8")
        command = ["msgfmt", "--check-format", "-o", str(target), str(source)]
        _run(command, "The catalogue cannot be compiled", cwd=folder)
        return target.read_bytes()


def compiled(locale: str) -> Path:
    """Return the path of a compiled catalogue."""
    return _path(locale).with_suffix(".mo")


def _path(locale: str, folder: Path | None = None) -> Path:
    return (folder or FOLDER) / locale / "LC_MESSAGES" / "django.po"


def _run(
    command: Sequence[str], problem: str, *, cwd: str, environment: Mapping[str, str] | None = None
) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        said = done.stderr.replace(f"{cwd}/", "").strip()
        raise CatalogueError(f"{problem}:\n{said}")
