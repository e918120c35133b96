"""Files of people in many languages and encodings, made of the texts in encodings.toml.

`python3 -m tests.tabular.encoding_corpus` prints how many of them are read rightly, by encoding and length.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from storage.tabular import encoding_guess, encodings
from storage.tabular.encoding_guess import Evidence, Guess

TEXTS = Path(__file__).with_name("encodings.toml")
HEADER = "PartitionKey;RowKey;Name;City;Item;Note\r\n"
_COLUMNS = ("people", "cities", "products", "notes")
_PLAIN = ("Smith", "Order", "ready", "Item A", "OK", "Box 12", "Martin", "Berlin", "Paris", "open")
_ROWS = {"medium": (10, 4), "long": (60, 3)}  # rows of a file, and number of files


class TextFile(NamedTuple):
    """A file as ``content``, and what it is as text; a short one has one to three cells beyond ASCII in four rows."""

    language: str
    encoding: str
    length: str
    number: int
    text: str

    @property
    def content(self) -> bytes:
        return self.text.encode(encodings.codec_of(self.encoding))


def files() -> Iterator[TextFile]:
    for language, texts in tomllib.loads(TEXTS.read_text()).items():
        for encoding in texts["encodings"]:
            cells = [[it for it in texts[name] if _has(encoding, it)] for name in _COLUMNS]
            yield from (TextFile(language, encoding, *it) for it in _short(cells))
            yield from (TextFile(language, encoding, *it) for it in _longer(cells))


def _has(encoding: str, text: str) -> bool:
    codec = encodings.codec_of(encoding)
    try:
        return text.encode(codec).decode(codec) == text
    except UnicodeEncodeError:
        return False


def _short(cells: list[list[str]]) -> Iterator[tuple[str, int, str]]:
    beyond = [it for column in cells for it in column if not it.isascii()]
    for number in range(len(beyond)):
        several = [beyond[(number + 7 * at) % len(beyond)] for at in range(number % 3 + 1)]
        lines = []
        for row in range(4):
            fields = [_PLAIN[(number + row + at) % len(_PLAIN)] for at in range(4)]
            if row < len(several):
                fields[row] = several[row]
            lines.append(f"p;{row:03};{';'.join(fields)}\r\n")
        yield "short", number, HEADER + "".join(lines)


def _longer(cells: list[list[str]]) -> Iterator[tuple[str, int, str]]:
    for length, (rows, number_of_files) in _ROWS.items():
        for number in range(number_of_files):
            lines = []
            for row in range(rows):
                columns = (column or _PLAIN for column in cells)
                fields = [it[(row * (at + 1) + number * 3 + at) % len(it)] for at, it in enumerate(columns)]
                lines.append(f"p;{row:03};{';'.join(fields)}\r\n")
            yield length, number, HEADER + "".join(lines)


def guess(content: bytes, language: str = "") -> Guess:
    evidence = Evidence()
    evidence.add(content)
    return encoding_guess.guess(evidence, language)


def is_read_rightly(file: TextFile) -> bool:
    """Return whether a file is decoded to its text, in whichever encoding."""
    codec = encodings.codec_of(guess(file.content).encoding)
    return file.content.decode(codec, "replace") == file.text


def _print_table() -> None:
    right: Counter[Any] = Counter()
    total: Counter[Any] = Counter()
    for file in files():
        for key in ((file.encoding, file.length), ("all", file.length)):
            total[key] += 1
            right[key] += is_read_rightly(file)
    for encoding in dict.fromkeys(encoding for encoding, _ in sorted(total)):
        counts = (f"{right[encoding, it]}/{total[encoding, it]}" for it in ("short", "medium", "long"))
        print(f"{encoding:16}{''.join(f'{it:>12}' for it in counts)}")


if __name__ == "__main__":
    _print_table()
