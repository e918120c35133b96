"""Context of quick fixes: the token at fault, and faults of well-formed but unsupported filters."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from storage.domain.filters.ast import Operator
from storage.domain.filters.lexer import Token, TokenKind
from storage.domain.filters.literals import LITERALS, WORDS, write_literal
from storage.domain.refusals import Reason, Refusal
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import Edm, EdmValue
from storage.editing.filters.diagnostics import Suggestion


class DiagnosisContext(NamedTuple):
    """A filter with an error; ``at`` is the index of the token at fault."""

    text: str
    tokens: list[Token]
    at: int
    now: datetime
    dialect: Dialect

    @property
    def null_refusal(self) -> Refusal:
        """Return the refusal of null; only the console has a function to use instead."""
        has_isset = self.dialect.has_console_filters
        return Reason.FILTER_NULL.of() if has_isset else Reason.FILTER_UNSUPPORTED.of(name="null")

    def kinds(self, start: int, count: int) -> list[TokenKind]:
        return [token.kind for token in self.tokens[max(0, start) : start + count]] if start >= 0 else []

    def name(self, index: int) -> str:
        """Return the text of the token at an index if it is a name, otherwise an empty string."""
        if not 0 <= index < len(self.tokens) or self.tokens[index].kind is not TokenKind.NAME:
            return ""
        return self.tokens[index].text

    def is_operand(self, index: int) -> bool:
        """Return whether the token can end or begin an operand: a literal, name or closing parenthesis."""
        return self.kinds(index, 1) in _OPERANDS

    def is_call(self, index: int) -> bool:
        """Return whether the token is a name followed by a parenthesis."""
        return bool(self.name(index)) and self.kinds(index + 1, 1) == [TokenKind.OPEN]

    def fix(self, first: int, last: int, replacement: str, refusal: Refusal) -> Suggestion:
        """Suggest a replacement of the tokens from ``first`` to ``last``, inclusive."""
        return Suggestion(self.tokens[first].start, self.tokens[last].end, replacement, refusal)

    def close(self, opening: int) -> int | None:
        """Return the index of the parenthesis that matches the one at ``opening``."""
        depth = 0
        for index in range(opening, len(self.tokens)):
            depth += {TokenKind.OPEN: 1, TokenKind.CLOSE: -1}.get(self.tokens[index].kind, 0)
            if depth == 0:
                return index
        return None


# Int64 is the only type of number whose literals have a suffix
LITERAL_TYPES: Final = {
    TokenKind.DATETIME: Edm.DATETIME,
    TokenKind.GUID: Edm.GUID,
    TokenKind.BINARY: Edm.BINARY,
    TokenKind.NUMBER: Edm.INT64,
}
_OPERANDS: Final = [[kind] for kind in (*LITERALS, TokenKind.NAME, TokenKind.CLOSE)]


def quote_text(text: str) -> str:
    return write_literal(EdmValue(Edm.STRING, text))


def find_fault(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the span of the first function, null, list or comparison with unsupported sides."""
    context = DiagnosisContext("", list(tokens), 0, datetime.min, dialects.CONSOLE)  # noqa: DTZ901
    for index, token in enumerate(tokens):
        last = _last_of_fault(context, index)
        if last is not None:
            return token.start, tokens[last].end
    return None


def _last_of_fault(context: DiagnosisContext, index: int) -> int | None:
    name = context.name(index)
    if name == "null":
        return index
    if context.is_call(index) and name not in _BEFORE_GROUP:
        return context.close(index + 1) or len(context.tokens) - 1
    if name in UNSUPPORTED and context.kinds(index - 1, 1) not in ([], [TokenKind.OPEN]):
        return index
    if context.kinds(index, 1) in ([TokenKind.SLASH], [TokenKind.MINUS]):
        return index
    is_call = context.kinds(index + 3, 1) == [TokenKind.OPEN]
    is_relation = context.name(index + 1) in RELATIONS and index + 2 < len(context.tokens)
    if is_relation and not is_call and _is_value(context, index) is _is_value(context, index + 2) is not None:
        return index + 2
    is_compared = context.name(index - 1) in RELATIONS or context.name(index + 1) in RELATIONS
    return index if context.tokens[index].kind in LITERALS and not is_compared else None


RELATIONS: Final = frozenset(Operator)
UNSUPPORTED: Final = frozenset({"in", "has", "add", "sub", "mul", "div", "mod"})
_BEFORE_GROUP: Final = frozenset({"and", "or", "not", *RELATIONS, *UNSUPPORTED})


def _is_value(context: DiagnosisContext, index: int) -> bool | None:
    """Return True for a literal, False for a name, None for any other token."""
    token = context.tokens[index]
    if token.kind in LITERALS or context.name(index) in WORDS:
        return True
    return False if token.kind is TokenKind.NAME else None
