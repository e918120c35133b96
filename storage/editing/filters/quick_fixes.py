"""Quick fixes: the characters at fault in a text that is not a filter, and replacements that make it one."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import TokenKind, tokenize_leniently
from storage.domain.filters.literals import LITERALS, WORDS, write_literal
from storage.domain.filters.parser import CONSOLE_LIMIT, Dialect, parse
from storage.domain.values.edm import Edm, read_datetime
from storage.editing import typed_text
from storage.editing.filters import other_dialects
from storage.editing.filters.diagnosis import RELATIONS, UNSUPPORTED, DiagnosisContext, find_fault, quote_text
from storage.editing.filters.faults import explain_fault
from storage.editing.filters.suggestions import FilterFault, Finding, Suggestion
from storage.editing.filters.suggestions import FixReason as FixReason
from storage.editing.invalid_text import InvalidText


def fix_unclosed(context: DiagnosisContext) -> Iterator[Suggestion]:
    token, end = context.tokens[context.at], len(context.text.rstrip())
    if token.kind is TokenKind.UNREADABLE and token.text.startswith("'"):
        yield Suggestion(end, end, "'", FixReason.UNCLOSED)
    kinds = [other.kind for other in context.tokens]
    missing = kinds.count(TokenKind.OPEN) - kinds.count(TokenKind.CLOSE)
    if token.kind is TokenKind.END and missing > 0:
        yield Suggestion(end, end, ")" * missing, FixReason.UNCLOSED)
    elif token.kind is TokenKind.CLOSE and missing < 0:
        yield context.fix(context.at, context.at, "", FixReason.UNOPENED)


_BARE = re.compile(r"[^\s()',]+")
_GUID = re.compile(r"\{?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?")


def fix_unquoted(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Quote a text, a time or a GUID without quotes."""
    places = {context.tokens[context.at].start} | {
        token.start for token in context.tokens[context.at + 2 :][:1] if token.kind not in LITERALS
    }
    for found in _BARE.finditer(context.text):
        is_at_fault = any(found.start() <= place < found.end() for place in places)
        if not is_at_fault or context.text[found.end() :].startswith("'") or found[0][0] in '"=<>!&|':
            continue
        index = next(i for i, token in enumerate(context.tokens) if token.end > found.start())
        literal, reason = _quote_bare(found[0])
        if context.name(index - 1) in RELATIONS and literal != found[0] and found[0] not in WORDS:
            yield Suggestion(found.start(), found.end(), literal, reason)


def _quote_bare(bare: str) -> tuple[str, FixReason]:
    if bare.lower() in ("true", "false"):
        return bare.lower(), FixReason.SPELLING
    if bare.lower() == "null":
        return bare, FixReason.NULL
    if _GUID.fullmatch(bare):
        return f"guid'{bare.strip('{}').lower()}'", FixReason.PREFIX
    try:
        read_datetime(bare)
    except StorageError:
        return quote_text(bare), FixReason.UNQUOTED
    return f"datetime'{bare}'", FixReason.PREFIX


_TYPES: Final = {TokenKind.DATETIME: Edm.DATETIME, TokenKind.GUID: Edm.GUID, TokenKind.BINARY: Edm.BINARY}
_PREFIXES: Final = {
    "datetime": "datetime",
    "datetimeoffset": "datetime",
    "guid": "guid",
    "x": "X",
    "binary": "X",
}


def fix_prefixes(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Correct the prefixes of ``DateTime'...'`` and ``datetime('...')``."""
    at = context.at
    if context.tokens[at].kind is TokenKind.STRING and (
        prefix := _PREFIXES.get(context.name(at - 1).lower())
    ):
        yield context.fix(at - 1, at, prefix + context.tokens[at].text, FixReason.PREFIX)
    called = context.kinds(at + 1, 3) == [TokenKind.OPEN, TokenKind.STRING, TokenKind.CLOSE]
    if called and (prefix := _PREFIXES.get(context.name(at).lower())):
        yield context.fix(at, at + 3, prefix + context.tokens[at + 2].text, FixReason.PREFIX)


def fix_spelling(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Correct a time, GUID or binary that is valid as typed text."""
    token = context.tokens[context.at]
    type_ = _TYPES.get(token.kind)
    if type_ is not None:
        content = token.text[token.text.index("'") + 1 : -1]
        try:
            value = typed_text.read(type_, content, context.now)
        except (InvalidText, StorageError):
            return
        yield context.fix(context.at, context.at, write_literal(value), FixReason.SPELLING)
    elif (
        token.kind is TokenKind.NUMBER
        and token.text[-1] in "lL"
        and not token.text[:-1].lstrip("-").isdigit()
    ):
        yield context.fix(context.at, context.at, token.text[:-1], FixReason.SPELLING)


_CONNECTIVES: Final = ("and", "or")
_OPERATORS: Final[Mapping[str, str]] = {
    **{str(name): str(name) for name in RELATIONS},
    **dict.fromkeys(("equal", "equals"), "eq"),
    **dict.fromkeys(("neq", "nequals"), "ne"),
    **dict.fromkeys(("gte", "above", "after"), "ge"),
    **dict.fromkeys(("lte", "below", "before"), "le"),
    "greater": "gt",
    "less": "lt",
}


def fix_operators(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Correct an operator to the most similar one, as ``eqq`` to ``eq``, or add one between two conditions."""
    at, word = context.at, context.name(context.at)
    if (
        not context.is_operand(at - 1)
        or not word
        or word.lower() in {*UNSUPPORTED, *other_dialects.SQL_WORDS}
    ):
        return
    is_after_condition = context.name(at - 2) in RELATIONS or context.kinds(at - 1, 1) == [TokenKind.CLOSE]
    if is_after_condition and context.name(at + 1) in RELATIONS:
        yield Suggestion(context.tokens[at].start, context.tokens[at].start, "and ", FixReason.OPERATOR)
    for similar in get_close_matches(word.lower(), _CONNECTIVES if is_after_condition else _OPERATORS, 1):
        yield context.fix(at, at, _OPERATORS.get(similar, similar), FixReason.OPERATOR)


_FIX_RULES: Final[Sequence[Callable[[DiagnosisContext], Iterator[Suggestion]]]] = (
    other_dialects.fix_signs,
    other_dialects.fix_functions,
    other_dialects.fix_sql_operators,
    other_dialects.fix_null_comparisons,
    fix_prefixes,
    fix_spelling,
    fix_unquoted,
    fix_unclosed,
    fix_operators,
)


def diagnose(text: str, error: StorageError, now: datetime) -> Finding:
    """Find the fault and its fixes; ``error`` is what parsing the text raised."""
    if len(text) > CONSOLE_LIMIT:
        return Finding(0, len(text), (), fault=FilterFault.TOO_LONG)
    tokens = tokenize_leniently(text)
    start, end = error.span or find_fault(tokens) or (0, len(text))
    at = next((index for index, token in enumerate(tokens) if token.end > start), len(tokens) - 1)
    context = DiagnosisContext(text, tokens, at, now)
    by_result = {fix.apply(text): fix for rule in reversed(_FIX_RULES) for fix in rule(context)}
    found = list(reversed(by_result.values()))
    complete = [fix for fix in found if _is_filter(fix.apply(text), now)]
    # a fix of one error of several is better than none
    fixes = tuple(complete or found[:1])
    return explain_fault(context, Finding(start, end, fixes), error)


def _is_filter(text: str, now: datetime) -> bool:
    try:
        return parse(text, Dialect.CONSOLE, now) is not None
    except StorageError:
        return False
