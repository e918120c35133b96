"""Literals that lack their quotes, their prefix or their spelling, and parentheses that lack their other half."""

import re
from collections.abc import Iterator
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import Kind
from storage.domain.filters.literals import WORDS, write_literal
from storage.domain.values.edm import Edm, read_datetime
from storage.editing import typed_text
from storage.editing.filters.faults import RELATIONS
from storage.editing.filters.mending import Fix, Patient, Repair, quoted
from storage.editing.invalid_text import InvalidText


def unclosed(patient: Patient) -> Iterator[Repair]:
    token, end = patient.tokens[patient.at], len(patient.text.rstrip())
    if token.kind is Kind.UNREADABLE and token.text.startswith("'"):
        yield Repair(end, end, "'", Fix.UNCLOSED)
    kinds = [other.kind for other in patient.tokens]
    missing = kinds.count(Kind.OPEN) - kinds.count(Kind.CLOSE)
    if token.kind is Kind.END and missing > 0:
        yield Repair(end, end, ")" * missing, Fix.UNCLOSED)
    elif token.kind is Kind.CLOSE and missing < 0:
        yield patient.repair(patient.at, patient.at, "", Fix.UNOPENED)


_BARE = re.compile(r"[^\s()',]+")
_GUID = re.compile(r"\{?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?")


def unquoted(patient: Patient) -> Iterator[Repair]:
    """A text, a time or a GUID without its quotes; a name that is meant as a text."""
    places = {patient.tokens[patient.at].start} | {
        token.start for token in patient.tokens[patient.at + 2 :][:1]
    }
    for found in _BARE.finditer(patient.text):
        is_at_fault = any(found.start() <= place < found.end() for place in places)
        if not is_at_fault or patient.text[found.end() :].startswith("'") or found[0][0] in '"=<>!&|':
            continue
        index = next(i for i, token in enumerate(patient.tokens) if token.end > found.start())
        literal, reason = _meant(found[0])
        if patient.name(index - 1) in RELATIONS and literal != found[0] and found[0] not in WORDS:
            yield Repair(found.start(), found.end(), literal, reason)


def _meant(bare: str) -> tuple[str, Fix]:
    if bare.lower() in ("true", "false"):
        return bare.lower(), Fix.SPELLING
    if bare.lower() == "null":
        return bare, Fix.NULL
    if _GUID.fullmatch(bare):
        return f"guid'{bare.strip('{}').lower()}'", Fix.PREFIX
    try:
        read_datetime(bare)
    except StorageError:
        return quoted(bare), Fix.UNQUOTED
    return f"datetime'{bare}'", Fix.PREFIX


_TYPES: Final = {Kind.DATETIME: Edm.DATETIME, Kind.GUID: Edm.GUID, Kind.BINARY: Edm.BINARY}
_PREFIXES: Final = {
    "datetime": "datetime",
    "datetimeoffset": "datetime",
    "guid": "guid",
    "x": "X",
    "binary": "X",
}


def prefixes(patient: Patient) -> Iterator[Repair]:
    """``DateTime'...'`` and ``datetime('...')``."""
    at = patient.at
    if patient.tokens[at].kind is Kind.STRING and (prefix := _PREFIXES.get(patient.name(at - 1).lower())):
        yield patient.repair(at - 1, at, prefix + patient.tokens[at].text, Fix.PREFIX)
    called = patient.kinds(at + 1, 3) == [Kind.OPEN, Kind.STRING, Kind.CLOSE]
    if called and (prefix := _PREFIXES.get(patient.name(at).lower())):
        yield patient.repair(at, at + 3, prefix + patient.tokens[at + 2].text, Fix.PREFIX)


def spelling(patient: Patient) -> Iterator[Repair]:
    """What is a time or a GUID to whoever types it into a field."""
    token = patient.tokens[patient.at]
    type_ = _TYPES.get(token.kind)
    if type_ is not None:
        content = token.text[token.text.index("'") + 1 : -1]
        try:
            value = typed_text.read(type_, content, patient.now)
        except (InvalidText, StorageError):
            return
        yield patient.repair(patient.at, patient.at, write_literal(value), Fix.SPELLING)
    elif token.kind is Kind.NUMBER and token.text[-1] in "lL" and not token.text[:-1].lstrip("-").isdigit():
        yield patient.repair(patient.at, patient.at, token.text[:-1], Fix.SPELLING)
