"""Diagnosis of filters: syntax errors, and warnings about probable mistakes."""

from datetime import UTC, datetime
from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.ast import Filter
from storage.domain.filters.lexer import TokenKind, tokenize_leniently
from storage.domain.filters.literals import LITERALS
from storage.domain.filters.parser import CONSOLE_LIMIT, DEPTH_LIMIT, TOO_DEEP, parse
from storage.domain.refusals import Reason, Refusal
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.editing.filters.context import (
    LITERAL_TYPES,
    RELATIONS,
    UNSUPPORTED,
    DiagnosisContext,
    find_fault,
)
from storage.editing.filters.diagnostics import Diagnostic, Schema, Severity
from storage.editing.filters.lint import lint
from storage.editing.filters.quick_fixes import suggest_fixes

_UNFINISHED: Final = frozenset(
    {Reason.FILTER_OPEN_STRING, Reason.FILTER_OPEN_GROUP, Reason.FILTER_INCOMPLETE}
)


def diagnose(
    text: str, schema: Schema, now: datetime | None, dialect: Dialect = dialects.CONSOLE
) -> list[Diagnostic]:
    """Return the error of an invalid filter, or the warnings about a valid one; ``now`` allows relative times."""
    try:
        parse(text, dialect, now)
    except StorageError as error:
        return [_explain(text, error, now, dialect)]
    return lint(text, schema, now or datetime.now(UTC))


def parse_filter(text: str, now: datetime | None, dialect: Dialect = dialects.CONSOLE) -> Filter | None:
    """Parse a user's filter; None if blank. Raises the parser's error with the text of the diagnosis."""
    try:
        return parse(text, dialect, now)
    except StorageError as error:
        start, length, refusal, *_ = _explain(text, error, now, dialect)
        diagnosed = type(error)(refusal).at(start, start + length)
        diagnosed.text = f"Position {start + 1}: {refusal}"  # for doors that mark nothing
        raise diagnosed from None


def _explain(text: str, error: StorageError, now: datetime | None, dialect: Dialect) -> Diagnostic:
    """Return the diagnostic of an invalid filter with its fixes; ``error`` is the parser's."""
    if len(text) > CONSOLE_LIMIT:
        return Diagnostic(0, len(text), Reason.FILTER_TOO_LONG.of(), Severity.ERROR)
    tokens = tokenize_leniently(text)
    start, end = error.span or find_fault(tokens) or (0, len(text))
    at = next((index for index, token in enumerate(tokens) if token.end > start), len(tokens) - 1)
    context = DiagnosisContext(text, tokens, at, now or datetime.now(UTC), dialect)
    suggested = suggest_fixes(context)
    complete = [fix for fix in suggested if _is_filter(fix.apply(text), now, dialect)]
    # a fix of one error of several is better than none
    fixes = complete or suggested[:1]
    if error.text == TOO_DEEP:
        refusal = Reason.FILTER_TOO_DEEP.of(deepest=DEPTH_LIMIT)
    elif tokens[at].kind is TokenKind.UNREADABLE and tokens[at].text.startswith("'"):
        refusal = Reason.FILTER_OPEN_STRING.of()
    else:
        refusal = fixes[0].refusal if fixes else _refuse_alone(context, text[start:end])
    severity = Severity.UNFINISHED if refusal.reason in _UNFINISHED else Severity.ERROR
    better = tuple(fix for fix in fixes if fix.apply(text) != text)
    return Diagnostic(start, end - start, refusal, severity, better)


def _is_filter(text: str, now: datetime | None, dialect: Dialect) -> bool:
    try:
        return parse(text, dialect, now) is not None
    except StorageError:
        return False


def _refuse_alone(context: DiagnosisContext, fault: str) -> Refusal:
    """Return the refusal of a filter without quick fixes; ``fault`` is the text at fault."""
    at = context.at
    token, name, is_compared = context.tokens[at], context.name(at), context.name(at + 1) in RELATIONS
    word, type_ = token.text or fault, LITERAL_TYPES.get(token.kind)
    if token.kind is TokenKind.END:
        return Reason.FILTER_INCOMPLETE.of()
    if token.kind is TokenKind.UNREADABLE:
        return Reason.FILTER_CHARACTER.of(name=fault)
    if type_ is not None and (is_compared or context.name(at - 1) in RELATIONS):
        return Reason.FILTER_LITERAL.of(name=word, type=type_.short_name)
    if token.kind in LITERALS and not is_compared:
        return Reason.FILTER_CONDITION.of(name=word)
    if is_compared and fault != word:
        return Reason.FILTER_OPERANDS.of()
    if context.is_call(at):
        return Reason.FILTER_UNSUPPORTED.of(name=f"{word}()")
    if name == "null":
        return context.null_refusal
    if token.kind in (TokenKind.SLASH, TokenKind.MINUS) or name in UNSUPPORTED:
        return Reason.FILTER_UNSUPPORTED.of(name=word)
    is_between = name and context.is_operand(at - 1) and context.is_operand(at + 1)
    if is_between and context.name(at - 2) not in RELATIONS:
        return Reason.FILTER_OPERATOR.of(name=word)
    return Reason.FILTER_UNEXPECTED.of(name=word)
