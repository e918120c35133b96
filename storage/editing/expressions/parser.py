"""Parser of expressions, built on the lexer and literals of ``$filter``; rejects incompatible types.

expression = term { ("+" | "-" | "add" | "sub") term }
term       = factor { ("*" | "/" | "%" | "mul" | "div" | "mod") factor }
factor     = "-" factor | "(" expression ")" | literal | property | function "(" [ expression { "," expression } ] ")"
"""

import difflib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from storage.domain.errors import InvalidInput, StorageError
from storage.domain.filters.lexer import Token, TokenKind, tokenize_leniently
from storage.domain.filters.literals import LITERALS, WORDS, read_literal
from storage.domain.refusals import Reason, Refusal
from storage.domain.values.edm import INT32, Edm, EdmValue
from storage.editing.expressions.functions import (
    CHAINED,
    COALESCE,
    DATETIME,
    FUNCTIONS,
    NEGATE,
    OPERATORS,
    SYNONYMS,
    Function,
)
from storage.editing.expressions.tree import Call, Constant, Expression, Property, depth
from storage.editing.time_patterns import InvalidPattern, read_pattern

LENGTH_LIMIT: Final = 10_000  # characters
DEPTH_LIMIT: Final = 100  # calls, operators and parentheses in each other
SYSTEM_TYPES: Final = {
    "PartitionKey": frozenset({Edm.STRING}),
    "RowKey": frozenset({Edm.STRING}),
    "Timestamp": frozenset({Edm.DATETIME}),
}


def parse(text: str, now: datetime) -> Expression:
    """Parse an expression, with times relative to ``now``; raises InvalidInput with the position."""
    if len(text) > LENGTH_LIMIT:
        raise InvalidInput(Reason.EXPRESSION_TOO_LONG.of(most=LENGTH_LIMIT))
    return _Parser(text, now).parse()


class _Parser:
    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.now = now
        self.tokens = tokenize_leniently(text)
        self.position = 0
        self.nested = 0

    def parse(self) -> Expression:
        root = self._read_expression()
        token = self._peek()
        if token.kind is not TokenKind.END:
            position = token.start + 1
            raise self._expected(
                token,
                Reason.EXPRESSION_OPERATOR.of(position=position),
                Reason.EXPRESSION_OPERATOR_NOT.of(position=position, token=token.text),
            )
        return root

    def _peek(self) -> Token:
        return self.tokens[self.position]

    def _next(self) -> Token:
        token = self._peek()
        self.position += 1
        return token

    def _expected(self, token: Token, at_end: Refusal, instead: Refusal) -> InvalidInput:
        if token.text.startswith("'") and token.kind is TokenKind.UNREADABLE:
            return self._error(token, Reason.EXPRESSION_APOSTROPHE.of(position=token.start + 1))
        return self._error(token, at_end if token.kind is TokenKind.END else instead)

    def _error(self, token: Token, refusal: Refusal) -> InvalidInput:
        return InvalidInput(refusal).at(token.start, max(token.end, token.start + 1))

    # operators

    def _read_expression(self, least: int = 1) -> Expression:
        left = self._read_factor()
        while (operator := self._read_operator(least)) is not None:
            token, precedence, function = operator
            left = self._call(token, function, (left, self._read_expression(precedence + 1)))
        return left

    def _read_operator(self, least: int) -> tuple[Token, int, Function] | None:
        token = self._peek()
        if token.kind is TokenKind.NUMBER and token.text.startswith("-"):
            token = self._split_minus(token)
        precedence, function = OPERATORS.get(token.text, (0, NEGATE))
        if precedence < least:
            return None
        self.position += 1
        return token, precedence, function

    def _split_minus(self, token: Token) -> Token:
        """Split a token such as ``-1`` in ``a-1``, which is a difference, into minus and number."""
        sign = Token(TokenKind.MINUS, "-", token.start, token.start + 1)
        kind = TokenKind.NUMBER if token.text[1].isdecimal() else TokenKind.NAME
        rest = Token(kind, token.text[1:], token.start + 1, token.end)
        self.tokens[self.position : self.position + 1] = [sign, rest]
        return sign

    # operands

    def _read_factor(self) -> Expression:
        self.nested += 1
        if self.nested > DEPTH_LIMIT:
            raise self._too_deep(self._peek())
        factor = self._read_operand(self._next())
        self.nested -= 1
        return factor

    def _read_operand(self, token: Token) -> Expression:
        match token.kind:
            case TokenKind.MINUS:
                return self._call(token, NEGATE, (self._read_factor(),))
            case TokenKind.OPEN:
                inner = self._read_expression()
                self._close()
                return inner
            case TokenKind.NAME if self._peek().kind is TokenKind.OPEN:
                return self._read_call(token)
            case TokenKind.NAME if token.text == "null":
                raise self._error(token, Reason.EXPRESSION_NULL.of(position=token.start + 1))
            case TokenKind.NAME if token.text not in WORDS:
                return Property(token.text, SYSTEM_TYPES.get(token.text, frozenset(Edm)))
            case kind if kind in LITERALS or kind is TokenKind.NAME:
                return Constant(self._read_literal(token))
        position = token.start + 1
        raise self._expected(
            token,
            Reason.EXPRESSION_VALUE.of(position=position),
            Reason.EXPRESSION_VALUE_NOT.of(position=position, token=token.text),
        )

    def _read_literal(self, token: Token) -> EdmValue:
        try:
            value = read_literal(token, self.text, self.now)
        except StorageError as error:
            error.span = (token.start, token.end)
            raise
        if value.type is Edm.INT32 and value.value not in INT32:
            return EdmValue(Edm.INT64, value.value)
        return EdmValue(value.type, int(value.value)) if value.type is Edm.DATETIME else value

    def _close(self) -> None:
        token = self._next()
        if token.kind is not TokenKind.CLOSE:
            position = token.start + 1
            raise self._expected(
                token,
                Reason.EXPRESSION_CLOSE.of(position=position),
                Reason.EXPRESSION_CLOSE_NOT.of(position=position, token=token.text),
            )

    # functions

    def _read_call(self, token: Token) -> Expression:
        name = SYNONYMS.get(token.text, token.text)
        function = FUNCTIONS.get(name)
        if function is None:
            raise self._unknown(token, name)
        self._next()
        arguments = self._read_arguments(has_pattern=function is DATETIME)
        if function not in CHAINED:
            return self._call(token, function, arguments)
        if len(arguments) < 2:
            raise self._misused(token, function)
        if function is COALESCE:
            return self._call(token, function, arguments)
        first, *others = arguments
        for argument in others:
            first = self._call(token, function, (first, argument))
        return first

    def _read_arguments(self, *, has_pattern: bool) -> tuple[Expression, ...]:
        if self._peek().kind is TokenKind.CLOSE:
            self._next()
            return ()
        arguments = [self._read_expression()]
        while self._peek().kind is TokenKind.COMMA:
            self._next()
            token = self._peek()
            arguments.append(self._read_expression())
            if has_pattern and len(arguments) == 2:
                self._check_pattern(token, arguments[1])
        self._close()
        return tuple(arguments)

    def _check_pattern(self, token: Token, argument: Expression) -> None:
        position = token.start + 1
        if not isinstance(argument, Constant) or argument.value.type is not Edm.STRING:
            raise self._error(token, Reason.EXPRESSION_PATTERN_TEXT.of(position=position))
        try:
            read_pattern(str(argument.value.value))
        except InvalidPattern as error:
            start, end = (token.start + _place_within(token.text, it) for it in (error.start, error.end))
            facts = {**error.refusal.facts, "position": start + 1}
            raise InvalidInput(Refusal(error.refusal.reason, facts)).at(start, max(end, start + 1)) from None

    def _call(self, token: Token, function: Function, arguments: tuple[Expression, ...]) -> Call:
        level = 1 + max(map(depth, arguments), default=0)
        if level > DEPTH_LIMIT:
            raise self._too_deep(token)
        types = _result_types(function, [it.types for it in arguments])
        if not types:
            raise self._misused(token, function, arguments)
        return Call(function, arguments, types, level)

    def _unknown(self, token: Token, name: str) -> InvalidInput:
        position = token.start + 1
        near = difflib.get_close_matches(name, FUNCTIONS, n=1)
        if not near:
            return self._error(
                token, Reason.EXPRESSION_NO_FUNCTION.of(function=token.text, position=position)
            )
        return self._error(
            token,
            Reason.EXPRESSION_FUNCTION_LIKE.of(function=token.text, position=position, similar=near[0]),
        )

    def _too_deep(self, token: Token) -> InvalidInput:
        return self._error(token, Reason.EXPRESSION_TOO_DEEP.of(most=DEPTH_LIMIT, position=token.start + 1))

    def _misused(self, token: Token, function: Function, given: Sequence[Expression] = ()) -> InvalidInput:
        position = token.start + 1
        types = ", ".join(_name_types(it.types) for it in given)
        if not types:
            refusal = Reason.EXPRESSION_MISUSE.of(
                function=token.text, position=position, usage=function.usage
            )
        else:
            refusal = Reason.EXPRESSION_MISUSE_WITH.of(
                function=token.text, position=position, types=types, usage=function.usage
            )
        return self._error(token, refusal)


def _place_within(literal: str, index: int) -> int:
    """Return the place of a character of a text in its literal, in which apostrophes are doubled."""
    place = 1
    for _ in range(index):
        place += 2 if literal[place] == "'" else 1
    return place


def _result_types(function: Function, given: Sequence[frozenset[Edm]]) -> frozenset[Edm]:
    """Return the possible result types of a call; none if its arguments never fit."""
    if function is COALESCE:
        return frozenset().union(*given)
    return frozenset(
        signature.result
        for types, signature in function.signatures.items()
        if len(types) == len(given) and all(it in can for it, can in zip(types, given, strict=True))
    )


def _name_types(types: frozenset[Edm]) -> str:
    if types == frozenset(Edm):
        return "any type"
    return " or ".join(sorted(it.short_name for it in types))
