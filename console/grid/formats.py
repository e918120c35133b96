"""Lossless text formats of entities for the clipboard; storage.tabular.writing makes files."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

from console.grid.documents import all_values
from storage.domain.entities.entity import StoredEntity, write_document
from storage.tabular.writing import value_text, write_rows

_SURROGATE = re.compile("[\ud800-\udfff]")


# for the clipboard: only visible columns


def column_texts(stored: StoredEntity, names: Sequence[str]) -> list[str]:
    """Return the texts of all columns, including keys and Timestamp."""
    values = all_values(stored)
    return [value_text(values[name]) if name in values else "" for name in names]


def write_tsv(rows: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    return write_rows([names, *rows] if names else rows, "excel-tab")


def write_table(rows: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """Return an HTML table for the clipboard that makes spreadsheets keep values as text."""
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>" if names else ""
    return f"<table>{head}{''.join(map(_html_row, rows))}</table>"


def _html_row(row: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>"


def write_markdown(rows: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(map(_in_markdown, line))} |\n" for line in lines)


def _in_markdown(text: str) -> str:
    return (
        re.sub(r"\r\n|\r|\n", "<br>", re.sub(r"([\\|<>&*_`\[\]])", r"\\\1", text)) if text != "---" else text
    )


def write_pretty_document(stored: StoredEntity) -> str:
    """Return a readable JSON document: one member per line, letters unescaped."""
    return escape_surrogates(json.dumps(json.loads(write_document(stored)), ensure_ascii=False, indent=2))


def escape_surrogates(text: str) -> str:
    """Write lone surrogates, which a page cannot contain, as JSON escapes."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


WRITERS: Final[Mapping[str, Callable[[Sequence[Sequence[str]], Sequence[str]], str]]] = {
    "tsv": write_tsv,
    "csv": lambda rows, names: write_rows([names, *rows]),
    "markdown": write_markdown,
}
