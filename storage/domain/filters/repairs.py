"""What is wrong in a text that is no filter, and what to put in its place: mostly what other languages would say."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from storage.domain import typed_text
from storage.domain.edm import Edm, EdmValue, read_datetime
from storage.domain.errors import StorageError
from storage.domain.filters.ast import IS_SET, MatchKind, Operator
from storage.domain.filters.lexer import Kind, Token, lenient_tokens
from storage.domain.filters.literals import LITERALS, WORDS, write_literal
from storage.domain.filters.parser import Dialect, parse
from storage.domain.filters.prefixes import following
from storage.domain.invalid_text import InvalidText


class Fix(StrEnum):
    """Why the repair says the same, in the words of a filter."""

    FOREIGN_SIGN = "foreign-sign"  # =, &&, "text", AND
    FUNCTION = "function"  # the service has none
    LIST = "list"  # in (...)
    SQL = "sql"  # like, between, is null
    NULL = "null"
    UNCLOSED = "unclosed"
    UNOPENED = "unopened"
    UNQUOTED = "unquoted"
    PREFIX = "prefix"  # datetime, guid
    SPELLING = "spelling"  # of a literal
    INT64_SUFFIX = "int64-suffix"
    STORED_TYPE = "stored-type"
    STORED_NAME = "stored-name"


class Repair(NamedTuple):
    """``replacement`` in the place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    replacement: str
    reason: Fix

    def applied(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


class Diagnosis(NamedTuple):
    """Which characters are at fault, and what may be done about it, the best first."""

    start: int
    end: int
    repairs: tuple[Repair, ...]


class _Patient(NamedTuple):
    """``at`` is the index of the token at fault."""

    text: str
    tokens: list[Token]
    at: int
    now: datetime

    def kinds(self, start: int, count: int) -> list[Kind]:
        return [token.kind for token in self.tokens[max(0, start) : start + count]] if start >= 0 else []

    def name(self, index: int) -> str:
        """Of a name; nothing where there is none."""
        if not 0 <= index < len(self.tokens) or self.tokens[index].kind is not Kind.NAME:
            return ""
        return self.tokens[index].text

    def repair(self, first: int, last: int, replacement: str, reason: Fix) -> Repair:
        """``replacement`` for the tokens from ``first`` to ``last``, both included."""
        return Repair(self.tokens[first].start, self.tokens[last].end, replacement, reason)

    def close(self, opening: int) -> int | None:
        """The index of the parenthesis that closes the one at ``opening``."""
        depth = 0
        for index in range(opening, len(self.tokens)):
            depth += {Kind.OPEN: 1, Kind.CLOSE: -1}.get(self.tokens[index].kind, 0)
            if depth == 0:
                return index
        return None


def diagnose(text: str, error: StorageError, now: datetime) -> Diagnosis:
    """``error`` is what reading the text raised."""
    tokens = lenient_tokens(text)
    start, end = error.span or _span(tokens) or (0, len(text))
    at = next((index for index, token in enumerate(tokens) if token.end > start), len(tokens) - 1)
    patient = _Patient(text, tokens, at, now)
    found = list(dict.fromkeys(repair for rule in _RULES for repair in rule(patient)))
    curing = [repair for repair in found if _is_filter(repair.applied(text), now)]
    # one step of several is better than none
    return Diagnosis(start, end, tuple(curing or found[:1]))


def _is_filter(text: str, now: datetime) -> bool:
    try:
        return parse(text, Dialect.CONSOLE, now) is not None
    except StorageError:
        return False


# where it is that nobody has said


def _span(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Of what is well-formed and yet no filter: the first function, null, list, or comparison of unfit sides."""
    patient = _Patient("", list(tokens), 0, datetime.min)  # noqa: DTZ901
    for index, token in enumerate(tokens):
        last = _last_of_fault(patient, index)
        if last is not None:
            return token.start, tokens[last].end
    return None


def _last_of_fault(patient: _Patient, index: int) -> int | None:
    name = patient.name(index)
    if name == "null":
        return index
    if name and patient.kinds(index + 1, 1) == [Kind.OPEN] and name not in _BEFORE_GROUP:
        return patient.close(index + 1)
    if name in _UNSUPPORTED and patient.kinds(index - 1, 1) not in ([], [Kind.OPEN]):
        return index
    if patient.kinds(index, 1) in ([Kind.SLASH], [Kind.MINUS]):
        return index
    is_call = patient.kinds(index + 3, 1) == [Kind.OPEN]
    is_relation = patient.name(index + 1) in _RELATIONS and index + 2 < len(patient.tokens)
    if is_relation and not is_call and _is_value(patient, index) is _is_value(patient, index + 2) is not None:
        return index + 2
    return index if _stands_alone(patient, index) else None


_RELATIONS: Final = frozenset(Operator)
_UNSUPPORTED: Final = frozenset({"in", "has", "add", "sub", "mul", "div", "mod"})
_BEFORE_GROUP: Final = frozenset({"and", "or", "not", *_RELATIONS, *_UNSUPPORTED})


def _is_value(patient: _Patient, index: int) -> bool | None:
    """Whether a literal stands there, or a name; None for anything else."""
    token = patient.tokens[index]
    if token.kind in LITERALS or patient.name(index) in WORDS:
        return True
    return False if token.kind is Kind.NAME else None


def _stands_alone(patient: _Patient, index: int) -> bool:
    is_compared = patient.name(index - 1) in _RELATIONS or patient.name(index + 1) in _RELATIONS
    return patient.tokens[index].kind in LITERALS and not is_compared


# signs and words of other languages, all of them at once

_FOREIGN = re.compile(
    r"""'[^']*(?:''[^']*)*'?
    | (?P<double>"(?:[^"\\]|\\.)*" | [\u201c\u201d][^\u201c\u201d]*[\u201c\u201d]
                | [\u2018\u2019][^\u2018\u2019]*[\u2018\u2019])
    | (?P<sign>===? | == | = | !== | != | <> | <= | >= | < | > | && | & | \|\| | \| | !)
    | (?P<word>(?<!\w)(?:AND|OR|NOT|EQ|NE|GT|GE|LT|LE)(?!\w))""",
    re.VERBOSE | re.IGNORECASE,
)
_SIGNS: Final = {
    **dict.fromkeys(("=", "==", "==="), "eq"),
    **dict.fromkeys(("!=", "!==", "<>"), "ne"),
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "!": "not",
    **dict.fromkeys(("&", "&&"), "and"),
    **dict.fromkeys(("|", "||"), "or"),
}


def _foreign(patient: _Patient) -> Iterator[Repair]:
    wrong = [found for found in _FOREIGN.finditer(patient.text) if _native(found) != found[0]]
    token = patient.tokens[patient.at]
    near = (token.start, patient.tokens[max(0, patient.at - 1)].start)
    if not any(found.start() <= start < found.end() for found in wrong for start in near):
        return
    start, end = wrong[0].start(), wrong[-1].end()
    replaced, position = "", start
    for found in wrong:
        replaced += patient.text[position : found.start()] + _spaced(patient.text, found, _native(found))
        position = found.end()
    yield Repair(start, end, replaced, Fix.FOREIGN_SIGN)


def _native(found: re.Match[str]) -> str:
    if found["double"]:
        return _quoted(re.sub(r'\\(["\\])', r"\1", found[0][1:-1]))
    if found["sign"]:
        return _SIGNS[found[0]]
    return found[0].lower() if found["word"] else found[0]


def _spaced(text: str, found: re.Match[str], native: str) -> str:
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    left = " " if before and before not in " \t\r\n(" else ""
    right = " " if after and after not in " \t\r\n)," else ""
    return f"{left}{native}{right}"


def _quoted(text: str) -> str:
    return write_literal(EdmValue(Edm.STRING, text))


# functions, and what SQL would say

_TEXT_FIRST: Final = [Kind.STRING, Kind.COMMA, Kind.NAME, Kind.CLOSE]
_NAME_FIRST: Final = [Kind.NAME, Kind.COMMA, Kind.STRING, Kind.CLOSE]
_FUNCTIONS: Final[Mapping[str, str]] = {
    "startswith": "startswith",
    "startsWith": "startswith",
    "beginswith": "startswith",
    "begins_with": "startswith",
    "endsWith": "endswith",
    "endswith": "endswith",
    "substringof": "contains",
    "contains": "contains",
    "Contains": "contains",
    "StartsWith": "startswith",
    "EndsWith": "endswith",
}


def _call(patient: _Patient) -> Iterator[Repair]:
    """``startswith(A, 'x')``, the arguments in either order, and with ``eq true`` behind."""
    at = patient.at
    function = _FUNCTIONS.get(patient.name(at))
    arguments = patient.kinds(at + 2, 4)
    if function is None or arguments not in (_TEXT_FIRST, _NAME_FIRST):
        return
    name, text = (at + 2, at + 4) if arguments == _NAME_FIRST else (at + 4, at + 2)
    last, is_true = at + 5, True
    if patient.name(last + 1) == "eq" and patient.name(last + 2) in ("true", "false"):
        is_true = patient.name(last + 2) == "true"
        last += 2
    said = _said(patient.name(name), function, patient.tokens[text].text)
    is_bound = patient.name(at - 1) == "not"
    said = said if is_true else f"not ({said})"
    yield patient.repair(at, last, f"({said})" if is_bound else said, Fix.FUNCTION)


def _said(name: str, function: str, quoted: str) -> str:
    if function != "startswith":
        return f"{function}({name},{quoted})"
    end = following(quoted[1:-1].replace("''", "'"))
    return f"{name} ge {quoted}" + ("" if end is None else f" and {name} lt {_quoted(end)}")


def _infix(patient: _Patient) -> Iterator[Repair]:
    """``A like 'x%'``, ``A contains 'x'``, ``A between 1 and 5``, ``A is not null``, ``A in ('x', 'y')``."""
    at = patient.at
    subject = patient.name(at - 1)
    word = patient.name(at).lower()
    if not subject:
        return
    if word == "in" and patient.kinds(at + 1, 1) == [Kind.OPEN]:
        yield from _list(patient, subject)
    elif word == "like" and patient.kinds(at + 1, 1) == [Kind.STRING]:
        yield patient.repair(at - 1, at + 1, _like(subject, patient.tokens[at + 1].text), Fix.SQL)
    elif word in _INFIXES and patient.kinds(at + 1, 1) == [Kind.STRING]:
        said = _said(subject, _INFIXES[word], patient.tokens[at + 1].text)
        yield patient.repair(at - 1, at + 1, said, Fix.FUNCTION)
    elif word == "between" and patient.name(at + 2).lower() == "and" and at + 3 < len(patient.tokens) - 1:
        first, last = patient.tokens[at + 1].text, patient.tokens[at + 3].text
        yield patient.repair(at - 1, at + 3, f"{subject} ge {first} and {subject} le {last}", Fix.SQL)
    elif word == "is":
        is_not = patient.name(at + 1).lower() == "not"
        if patient.name(at + 1 + is_not).lower() == "null":
            yield patient.repair(at - 1, at + 1 + is_not, _null(subject, is_set=is_not), Fix.NULL)


_INFIXES: Final = {"startswith": "startswith", "endswith": "endswith", "contains": "contains"}


def _list(patient: _Patient, subject: str) -> Iterator[Repair]:
    last = patient.close(patient.at + 1)
    if last is None:
        return
    inside = patient.tokens[patient.at + 2 : last]
    values = [token.text for token in inside if token.kind is not Kind.COMMA]
    if values and len(values) * 2 - 1 == len(inside):
        said = " or ".join(f"{subject} eq {value}" for value in values)
        yield patient.repair(patient.at - 1, last, f"({said})" if len(values) > 1 else said, Fix.LIST)


def _like(name: str, quoted: str) -> str:
    pattern = quoted[1:-1]
    text = f"'{pattern.strip('%')}'"
    match pattern.startswith("%"), pattern.endswith("%"):
        case True, True:
            return _said(name, MatchKind.CONTAINS, text)
        case True, False:
            return _said(name, MatchKind.ENDS_WITH, text)
        case False, True:
            return _said(name, "startswith", text)
    return f"{name} eq {quoted}"


def _nulls(patient: _Patient) -> Iterator[Repair]:
    """``A eq null``, either way round."""
    for index in (patient.at, patient.at + 2):
        operator = patient.name(index - 1) if index > patient.at else patient.name(index + 1)
        before = patient.name(patient.at - 1)
        if patient.name(index).lower() != "null":
            continue
        if index == patient.at and before in ("eq", "ne"):
            said = _null(patient.name(index - 2), is_set=before == "ne")
            yield patient.repair(index - 2, index, said, Fix.NULL)
        elif operator in ("eq", "ne"):
            first, last = (index, index + 2) if index == patient.at else (index - 2, index)
            subject = patient.name(last) if index == patient.at else patient.name(first)
            yield patient.repair(first, last, _null(subject, is_set=operator == "ne"), Fix.NULL)


def _null(name: str, *, is_set: bool) -> str:
    return f"{IS_SET}({name})" if is_set else f"not {IS_SET}({name})"


# quotes and parentheses


def _unclosed(patient: _Patient) -> Iterator[Repair]:
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


def _unquoted(patient: _Patient) -> Iterator[Repair]:
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
        if patient.name(index - 1) in _RELATIONS and literal != found[0] and found[0] not in WORDS:
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
        return _quoted(bare), Fix.UNQUOTED
    return f"datetime'{bare}'", Fix.PREFIX


# literals

_TYPES: Final = {Kind.DATETIME: Edm.DATETIME, Kind.GUID: Edm.GUID, Kind.BINARY: Edm.BINARY}
_PREFIXES: Final = {
    "datetime": "datetime",
    "datetimeoffset": "datetime",
    "guid": "guid",
    "x": "X",
    "binary": "X",
}


def _prefixes(patient: _Patient) -> Iterator[Repair]:
    """``DateTime'...'`` and ``datetime('...')``."""
    at = patient.at
    if patient.tokens[at].kind is Kind.STRING and (prefix := _PREFIXES.get(patient.name(at - 1).lower())):
        yield patient.repair(at - 1, at, prefix + patient.tokens[at].text, Fix.PREFIX)
    called = patient.kinds(at + 1, 3) == [Kind.OPEN, Kind.STRING, Kind.CLOSE]
    if called and (prefix := _PREFIXES.get(patient.name(at).lower())):
        yield patient.repair(at, at + 3, prefix + patient.tokens[at + 2].text, Fix.PREFIX)


def _spelling(patient: _Patient) -> Iterator[Repair]:
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


_RULES: Final[Sequence[Callable[[_Patient], Iterator[Repair]]]] = (
    _foreign,
    _call,
    _infix,
    _nulls,
    _prefixes,
    _spelling,
    _unquoted,
    _unclosed,
)
