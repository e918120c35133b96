"""Parser of filters by operator precedence with two stacks, as recursion would limit length and depth."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from storage.domain import errors
from storage.domain.errors import InvalidInput, StorageError
from storage.domain.filters.ast import (
    IS_SET,
    And,
    Comparison,
    Constant,
    Filter,
    IsSet,
    Match,
    MatchKind,
    Not,
    Operator,
    Or,
)
from storage.domain.filters.lexer import Token, TokenKind, syntax_error, tokenize
from storage.domain.filters.literals import LITERALS, TRUE, WORDS, read_literal
from storage.domain.values import dialects
from storage.domain.values.dialects import Dialect
from storage.domain.values.edm import Edm, EdmValue

CONSOLE_LIMIT: Final = (
    100_000  # characters of a filter of the console; the service's are bounded by their URL
)
DEPTH_LIMIT: Final = 200  # levels of parentheses and ``not``; ``not (`` is one level

NOT_BOOLEAN: Final = "The $filter expression must evaluate to a single boolean value."
INCOMPATIBLE_OPERAND: Final = (
    "A unary operator with an incompatible type was detected. Found operand type '{}' for operator kind '{}'."
)
INCOMPATIBLE_OPERANDS: Final = (
    "A binary operator with incompatible types was detected."
    " Found operand types '{}' and '{}' for operator kind '{}'."
)
_DECLARED: Final = {"PartitionKey": "Edm.String", "RowKey": "Edm.String", "Timestamp": "Edm.DateTime"}
TOO_LONG: Final = f"The $filter expression is longer than {CONSOLE_LIMIT} characters."
TOO_DEEP: Final = f"The $filter expression is nested deeper than {DEPTH_LIMIT} levels."

_MATCHES: Final = frozenset(MatchKind)
_RELATIONS: Final = {str(operator): operator for operator in Operator}
# ``not`` binds looser than comparisons: ``not a eq 1`` means ``not (a eq 1)``, the only reading that makes sense
_NOT: Final = 3
_NEGATE: Final = 7
_BINARY: Final = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(_RELATIONS, 4),
    **dict.fromkeys(("in", "has"), 4),
    **dict.fromkeys(("add", "sub"), 5),
    **dict.fromkeys(("mul", "div", "mod"), 6),
}


class _Name(NamedTuple):
    """Name in a filter: a property compared with something or a Boolean property; not yet known which."""

    text: str


class _Other(Enum):
    NULL = "null"
    UNSUPPORTED = "unsupported"


_Operand: TypeAlias = Filter | EdmValue | _Name | _Other


class _Pending(NamedTuple):
    """Operator waiting for its right operand, or an open parenthesis (precedence 0)."""

    text: str
    precedence: int
    level: int = 0  # the amount added to the depth
    takes_list: bool = False  # the parenthesis of a function call or of ``in``


_BOTTOM: Final = _Pending("", 0)


def parse(text: str, dialect: Dialect = dialects.STORAGE, now: datetime | None = None) -> Filter | None:
    """Parse a filter, None if it is blank; raises InvalidInput or NotImplemented.

    With ``now``, times may be relative, as in ``datetime'{{now-24h}}'``.
    """
    if dialect.has_console_filters and len(text) > CONSOLE_LIMIT:
        raise InvalidInput(TOO_LONG)
    if not text.strip():
        return None
    return _Parser(text, dialect, now).parse()


class _Parser:
    def __init__(self, text: str, dialect: Dialect, now: datetime | None) -> None:
        self.text = text
        self.dialect = dialect
        self.now = now
        self.tokens = tokenize(text)
        self.position = 0
        self.depth = 0
        self.operands: list[_Operand] = []
        self.operators: list[_Pending] = []

    def parse(self) -> Filter:
        while True:
            self._read_operand()
            if self._read_operator():
                break
        self._check_declared(self.operands)
        root = _boolean(self.operands.pop())
        if isinstance(root, _Other):
            raise errors.NotImplemented
        return root

    def _next(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def _peek(self, ahead: int = 0) -> TokenKind:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)].kind

    def _unexpected(self, token: Token) -> InvalidInput:
        return syntax_error(self.text, token.end, (token.start, token.end))

    # operands

    def _read_operand(self) -> None:
        """Consume tokens through the next operand, with any prefix operators and parentheses before it."""
        while True:
            token = self._next()
            if token.kind is TokenKind.OPEN:
                self._open(takes_list=self._top().text == "in")
            elif token.kind is TokenKind.MINUS:
                self._push(_Pending("-", _NEGATE))
            elif token.kind in LITERALS:
                return self.operands.append(self._read_literal(token))
            elif token.kind is not TokenKind.NAME:
                raise self._unexpected(token)
            elif token.text == "not":
                self._push(_Pending("not", _NOT, level=1))
            elif self._read_name(token):
                return None

    def _read_literal(self, token: Token) -> EdmValue:
        try:
            return read_literal(token, self.text, self.now, self.dialect.first_filter_tick)
        except StorageError as error:
            error.span = (token.start, token.end)
            raise

    def _read_name(self, token: Token) -> bool:
        """Read a name; return whether it is an operand, otherwise it opens a function call."""
        if self.dialect.has_console_filters and (call := self._read_console_call(token)):
            self.operands.append(call)
            return True
        is_path = self._skip_path()
        if self._peek() is TokenKind.OPEN and token.text not in _BINARY:
            return self._open_call()
        if is_path:
            self.operands.append(_Other.UNSUPPORTED)
        elif token.text == "null":
            self.operands.append(_Other.NULL)
        else:
            self.operands.append(WORDS.get(token.text) or _Name(token.text))
        return True

    def _read_console_call(self, name: Token) -> Filter | None:
        """Parse a function of the console's dialect; None if its arguments do not fit."""
        arguments = self.tokens[self.position : self.position + 5]
        match [argument.kind for argument in arguments]:
            case [TokenKind.OPEN, TokenKind.NAME, TokenKind.CLOSE, *_] if name.text == IS_SET:
                self.position += 3
                return IsSet(arguments[1].text)
            case [TokenKind.OPEN, TokenKind.NAME, TokenKind.COMMA, TokenKind.STRING, TokenKind.CLOSE] if (
                name.text in _MATCHES
            ):
                self.position += 5
                text = str(read_literal(arguments[3], self.text).value)
                return Match(arguments[1].text, MatchKind(name.text), text)
        return None

    def _skip_path(self) -> bool:
        start = self.position
        while self._peek() is TokenKind.SLASH and self._peek(1) is TokenKind.NAME:
            self.position += 2
        return self.position > start

    def _open_call(self) -> bool:
        self._next()
        if self._peek() is TokenKind.CLOSE:
            self._next()
            self.operands.append(_Other.UNSUPPORTED)
            return True
        self._open(takes_list=True)
        if (
            self._peek() is TokenKind.NAME and self._peek(1) is TokenKind.COLON
        ):  # the variable of ``any`` and ``all``
            self.position += 2
        return False

    # operators

    def _read_operator(self) -> bool:
        """Consume tokens through a binary operator or comma; return whether the filter ended instead."""
        while True:
            token = self._next()
            if token.kind is TokenKind.NAME and token.text in _BINARY:
                self._push_binary(token.text)
                return False
            if token.kind is TokenKind.COMMA:
                self._next_item(token)
                return False
            if token.kind is TokenKind.END:
                self._reduce_group()
                if self.operators:
                    raise self._unexpected(token)
                return True
            if token.kind is not TokenKind.CLOSE:
                raise self._unexpected(token)
            self._close(token)

    def _push_binary(self, text: str) -> None:
        precedence = _BINARY[text]
        # a chain of and, or of or, is reduced as a whole
        least = precedence + 1 if text in ("and", "or") else precedence
        while self._top().precedence >= least:
            self._reduce()
        self._push(_Pending(text, precedence))

    def _next_item(self, token: Token) -> None:
        self._reduce_group()
        if not self._top().takes_list:
            raise self._unexpected(token)
        self.operands.pop()

    def _close(self, token: Token) -> None:
        self._reduce_group()
        if not self.operators:
            raise self._unexpected(token)
        if self._pop().takes_list:
            self.operands[-1] = _Other.UNSUPPORTED

    # the stacks

    def _top(self) -> _Pending:
        return self.operators[-1] if self.operators else _BOTTOM

    def _open(self, *, takes_list: bool) -> None:
        self._push(_Pending("(", 0, level=0 if self._top().text == "not" else 1, takes_list=takes_list))

    def _push(self, pending: _Pending) -> None:
        self.depth += pending.level
        if self.depth > DEPTH_LIMIT:
            raise InvalidInput(TOO_DEEP)
        self.operators.append(pending)

    def _pop(self) -> _Pending:
        pending = self.operators.pop()
        self.depth -= pending.level
        return pending

    def _reduce_group(self) -> None:
        """Reduce the operators since the last open parenthesis to one operand."""
        while self._top().precedence:
            self._reduce()

    def _reduce(self) -> None:
        operator = self._pop().text
        if operator == "not":
            self._check_declared(self.operands[-1:], "Not")
            negated = _boolean(self.operands.pop())
            self.operands.append(negated if isinstance(negated, _Other) else Not(negated))
        elif operator == "-":
            self.operands[-1] = _Other.UNSUPPORTED
        elif operator in ("and", "or"):
            self._reduce_chain(operator)
        else:
            right, left = self.operands.pop(), self.operands.pop()
            relation = _RELATIONS.get(operator)
            self.operands.append(_compared(left, relation, right) if relation else _Other.UNSUPPORTED)

    def _check_declared(self, operands: Sequence[_Operand], operator: str = "") -> None:
        """Refuse a key or the Timestamp where a condition is required, as their types are declared.

        Observed for ``and``, with the texts of the OData library; ``not`` and ``or`` are [inferred] from the
        same library. Compared with a literal of another type, such as ``PartitionKey eq 5``, they match
        nothing: no source says that the service refuses it, and a program that accepts an empty result must
        not fail only here.
        """
        types = ["Edm.Boolean"] * len(operands)
        for place, operand in enumerate(operands):
            if isinstance(operand, _Name) and not self.dialect.is_cosmos:
                types[place] = _DECLARED.get(operand.text, types[place])
        wrong = next((place for place, it in enumerate(types) if it != "Edm.Boolean"), None)
        if wrong is None:
            return
        if not operator:
            raise InvalidInput(NOT_BOOLEAN)
        if len(operands) == 1:
            raise InvalidInput(INCOMPATIBLE_OPERAND.format(types[0], operator))
        left, right = (types[0], types[1]) if wrong < 2 else ("Edm.Boolean", types[wrong])
        raise InvalidInput(INCOMPATIBLE_OPERANDS.format(left, right, operator))

    def _reduce_chain(self, operator: str) -> None:
        length = 2
        while self._top().text == operator:
            self._pop()
            length += 1
        self._check_declared(self.operands[-length:], operator.capitalize())
        chain = [_boolean(operand) for operand in self.operands[-length:]]
        supported = tuple(operand for operand in chain if not isinstance(operand, _Other))
        del self.operands[-length:]
        if len(supported) < length:
            self.operands.append(_Other.UNSUPPORTED)
        else:
            self.operands.append(And(supported) if operator == "and" else Or(supported))


def _boolean(operand: _Operand) -> Filter | _Other:
    match operand:
        case _Name(text):
            return Comparison(text, Operator.EQ, TRUE)
        case EdmValue(Edm.BOOLEAN, bool(value)):
            return Constant(value)
        case EdmValue():
            raise InvalidInput(NOT_BOOLEAN)
        case _Other.NULL:
            raise InvalidInput
        case _:
            return operand


def _compared(left: _Operand, operator: Operator, right: _Operand) -> Filter | _Other:
    match left, right:
        case (_Other.NULL, _) | (_, _Other.NULL):
            raise InvalidInput
        case _Name(name), EdmValue() as literal:
            return Comparison(name, operator, literal)
        case EdmValue() as literal, _Name(name):
            return Comparison(name, operator.mirrored, literal)
        case _:
            return _unsupported_comparison(left, right)


def _unsupported_comparison(left: _Operand, right: _Operand) -> _Other:
    """Refuse a condition compared with a value; other unsupported comparisons get a different error."""
    for operand, other in ((left, right), (right, left)):
        is_condition = isinstance(operand, Comparison | And | Or | Not | Constant)
        if is_condition and isinstance(other, EdmValue) and other.type is not Edm.BOOLEAN:
            raise InvalidInput
    return _Other.UNSUPPORTED
