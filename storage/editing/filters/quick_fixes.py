"""Quick fixes for invalid filters: the range of the error, and replacements for it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import TokenKind
from storage.domain.filters.literals import LITERALS, WORDS, write_literal
from storage.domain.refusals import Reason, Refusal
from storage.domain.values.edm import Edm, read_datetime
from storage.editing import typed_text
from storage.editing.filters import other_dialects
from storage.editing.filters.context import (
    LITERAL_TYPES,
    RELATIONS,
    UNSUPPORTED,
    DiagnosisContext,
    quote_text,
)
from storage.editing.filters.diagnostics import Suggestion
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import InvalidText


def fix_unclosed(context: DiagnosisContext) -> Iterator[Suggestion]:
    token, end = context.tokens[context.at], len(context.text.rstrip())
    if token.kind is TokenKind.UNREADABLE and token.text.startswith("'"):
        yield Suggestion(end, end, "'", Reason.FILTER_OPEN_STRING.of())
    kinds = [other.kind for other in context.tokens]
    missing = kinds.count(TokenKind.OPEN) - kinds.count(TokenKind.CLOSE)
    if token.kind is TokenKind.END and missing > 0:
        is_ended = context.is_operand(context.at - 1)
        refusal = Reason.FILTER_OPEN_GROUP.of() if is_ended else Reason.FILTER_INCOMPLETE.of()
        yield Suggestion(end, end, ")" * missing, refusal)
    elif token.kind is TokenKind.CLOSE and missing < 0:
        yield context.fix(context.at, context.at, "", Reason.FILTER_NOT_OPENED.of())


_BARE = re.compile(r"[^\s()',]+")
_GUID = re.compile(r"\{?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?")


def fix_unquoted(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Quote a text, a time or a GUID without quotes."""
    places = {context.tokens[context.at].start} | {
        token.start for token in context.tokens[context.at + 2 :][:1] if token.kind not in LITERALS
    }
    for word in _BARE.finditer(context.text):
        is_at_fault = any(word.start() <= place < word.end() for place in places)
        if not is_at_fault or context.text[word.end() :].startswith("'") or word[0][0] in '"=<>!&|':
            continue
        index = next(i for i, token in enumerate(context.tokens) if token.end > word.start())
        literal, refusal = _quote_bare(word[0])
        if context.name(index - 1) in RELATIONS and literal != word[0] and word[0] not in WORDS:
            yield Suggestion(word.start(), word.end(), literal, refusal)


_RELATIVE_TIME = re.compile(r"\{\{\s*now\b[^}']*\}\}")


def fix_relative_times(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Convert ``{{now-1h}}`` to a literal."""
    time = _RELATIVE_TIME.match(context.text, context.tokens[context.at].start)
    if time is not None and context.dialect.has_console_filters:
        yield Suggestion(time.start(), time.end(), *_with_prefix(f"datetime'{time[0]}'"))


def _quote_bare(bare: str) -> tuple[str, Refusal]:
    if bare.lower() in ("true", "false"):
        return bare.lower(), Reason.FILTER_LETTER_CASE.of(instead=bare.lower())
    if bare.lower() == "null":
        return bare, Reason.FILTER_NULL.of()
    if _GUID.fullmatch(bare):
        return _with_prefix(f"guid'{bare.strip('{}').lower()}'")
    try:
        read_datetime(bare)
    except StorageError:
        return quote_text(bare), Reason.FILTER_QUOTES.of()
    return _with_prefix(f"datetime'{bare}'")


def _with_prefix(literal: str) -> tuple[str, Refusal]:
    type_ = _PREFIXED[literal[0]].short_name
    return literal, Reason.FILTER_PREFIX.of(type=type_, instead=literal)


_PREFIXED: Final = {"d": Edm.DATETIME, "g": Edm.GUID, "X": Edm.BINARY}
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
        yield context.fix(at - 1, at, *_with_prefix(prefix + context.tokens[at].text))
    called = context.kinds(at + 1, 3) == [TokenKind.OPEN, TokenKind.STRING, TokenKind.CLOSE]
    if called and (prefix := _PREFIXES.get(context.name(at).lower())):
        yield context.fix(at, at + 3, *_with_prefix(prefix + context.tokens[at + 2].text))


def fix_spelling(context: DiagnosisContext) -> Iterator[Suggestion]:
    """Correct a time, GUID or binary that is valid as typed text."""
    token = context.tokens[context.at]
    type_ = LITERAL_TYPES.get(token.kind)
    if type_ is None:
        return
    refusal = Reason.FILTER_LITERAL.of(name=token.text, type=type_.short_name)
    if type_ is not Edm.INT64:
        content = token.text[token.text.index("'") + 1 : -1]
        try:
            value = typed_text.read(type_, content, InputContext.of_any_account(context.now))
        except (InvalidText, StorageError):
            return
        yield context.fix(context.at, context.at, write_literal(value), refusal)
    elif token.text[-1] in "lL" and not token.text[:-1].lstrip("-").isdigit():
        yield context.fix(context.at, context.at, token.text[:-1], refusal)


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
    """Suggest the most similar operator, such as ``eq`` for ``eqq``, or ``and`` between two conditions."""
    at, word = context.at, context.name(context.at)
    if (
        not context.is_operand(at - 1)
        or not word
        or word.lower() in {*UNSUPPORTED, *other_dialects.SQL_WORDS}
    ):
        return
    is_after_condition = context.name(at - 2) in RELATIONS or context.kinds(at - 1, 1) == [TokenKind.CLOSE]
    if is_after_condition and context.name(at + 1) in RELATIONS:
        start = context.tokens[at].start
        yield Suggestion(start, start, "and ", Reason.FILTER_UNEXPECTED.of(name=word))
    for similar in get_close_matches(word.lower(), _CONNECTIVES if is_after_condition else _OPERATORS, 1):
        operator = _OPERATORS.get(similar, similar)
        yield context.fix(at, at, operator, Reason.FILTER_OPERATOR_LIKE.of(name=word, instead=operator))


_FIX_RULES: Final[Sequence[Callable[[DiagnosisContext], Iterator[Suggestion]]]] = (
    other_dialects.fix_signs,
    other_dialects.fix_functions,
    other_dialects.fix_sql_operators,
    other_dialects.fix_null_comparisons,
    fix_prefixes,
    fix_spelling,
    fix_relative_times,
    fix_unquoted,
    fix_unclosed,
    fix_operators,
)


def suggest_fixes(context: DiagnosisContext) -> list[Suggestion]:
    """Return the distinct fixes of all rules, best first; their results may still be invalid."""
    by_result = {fix.apply(context.text): fix for rule in reversed(_FIX_RULES) for fix in rule(context)}
    return list(reversed(by_result.values()))
