"""Why a text is not a filter, in one word, and the word that is at fault."""

from typing import Final

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import TokenKind
from storage.domain.filters.literals import LITERALS, WORDS
from storage.domain.filters.parser import TOO_DEEP
from storage.domain.values.edm import Edm
from storage.editing.filters.diagnosis import RELATIONS, UNSUPPORTED, DiagnosisContext
from storage.editing.filters.suggestions import FilterFault, Finding, FixReason

_BY_FIX: Final = {
    FixReason.FUNCTION: FilterFault.UNSUPPORTED,
    FixReason.LIST: FilterFault.UNSUPPORTED,
    FixReason.SQL: FilterFault.UNSUPPORTED,
    FixReason.NULL: FilterFault.NULL,
    FixReason.UNOPENED: FilterFault.NOT_OPENED,
    FixReason.UNQUOTED: FilterFault.QUOTES,
    FixReason.PREFIX: FilterFault.PREFIX,
    FixReason.OPERATOR: FilterFault.OPERATOR,
}
_TYPES: Final = {
    TokenKind.DATETIME: Edm.DATETIME,
    TokenKind.GUID: Edm.GUID,
    TokenKind.BINARY: Edm.BINARY,
    TokenKind.NUMBER: Edm.INT64,
}
_PREFIXES: Final = {"d": Edm.DATETIME, "g": Edm.GUID, "X": Edm.BINARY}
_QUOTES: Final = '"\u201c\u201d\u2018\u2019'


def explain_fault(context: DiagnosisContext, found: Finding, error: StorageError) -> Finding:
    """Name the fault of a text; ``error`` is what parsing it raised."""
    token, fix = context.tokens[context.at], found.fixes[0] if found.fixes else None
    word = token.text or context.text[found.start : found.end]
    replaced = context.text[fix.start : fix.end] if fix else ""
    instead = fix.replacement if fix else ""
    if error.text == TOO_DEEP:
        return found._replace(fault=FilterFault.TOO_DEEP)
    if token.kind is TokenKind.UNREADABLE and token.text.startswith("'"):
        return found._replace(fault=FilterFault.OPEN_STRING)
    if fix is None:
        return _explain_alone(context, found, word)
    match fix.reason:
        case FixReason.FOREIGN_SIGN if word[:1] in _QUOTES:
            return found._replace(fault=FilterFault.QUOTES)
        case FixReason.FOREIGN_SIGN:
            return found._replace(fault=FilterFault.SIGN)
        case FixReason.SPELLING if instead in WORDS:
            return found._replace(fault=FilterFault.LETTER_CASE, name=replaced, instead=instead)
        case FixReason.SPELLING:
            return found._replace(fault=FilterFault.LITERAL, name=word, asked=_TYPES[token.kind])
        case FixReason.UNCLOSED:
            is_ended = context.is_operand(context.at - 1)
            return found._replace(fault=FilterFault.OPEN_GROUP if is_ended else FilterFault.INCOMPLETE)
        case FixReason.PREFIX:
            return found._replace(fault=FilterFault.PREFIX, instead=instead, asked=_PREFIXES[instead[0]])
        case FixReason.OPERATOR if not replaced:
            return found._replace(fault=FilterFault.UNEXPECTED, name=word)
        case FixReason.FUNCTION if context.kinds(context.at + 1, 1) == [TokenKind.OPEN]:
            word = f"{word}()"
    return found._replace(fault=_BY_FIX[fix.reason], name=word, instead=instead)


def _explain_alone(context: DiagnosisContext, found: Finding, word: str) -> Finding:
    """Name a fault without a fix."""
    at = context.at
    token = context.tokens[at]
    fault = FilterFault.UNEXPECTED
    if token.kind is TokenKind.END:
        fault = FilterFault.INCOMPLETE
    elif token.kind is TokenKind.UNREADABLE:
        fault, word = FilterFault.CHARACTER, context.text[found.start : found.end]
    elif token.kind in _TYPES and _is_compared(context, at):
        return found._replace(fault=FilterFault.LITERAL, name=word, asked=_TYPES[token.kind])
    elif token.kind in LITERALS and context.name(at + 1) not in RELATIONS:
        fault = FilterFault.CONDITION
    elif context.name(at + 1) in RELATIONS and context.text[found.start : found.end] != word:
        fault = FilterFault.OPERANDS
    elif context.name(at) and context.kinds(at + 1, 1) == [TokenKind.OPEN]:
        fault, word = FilterFault.UNSUPPORTED, f"{word}()"
    elif context.name(at) == "null":
        fault = FilterFault.NULL
    elif token.kind in (TokenKind.SLASH, TokenKind.MINUS) or context.name(at) in UNSUPPORTED:
        fault = FilterFault.UNSUPPORTED
    elif context.name(at) and context.is_operand(at - 1) and context.is_operand(at + 1):
        is_after_condition = context.name(at - 2) in RELATIONS
        fault = FilterFault.UNEXPECTED if is_after_condition else FilterFault.OPERATOR
    return found._replace(fault=fault, name=word)


def _is_compared(context: DiagnosisContext, at: int) -> bool:
    return context.name(at - 1) in RELATIONS or context.name(at + 1) in RELATIONS
