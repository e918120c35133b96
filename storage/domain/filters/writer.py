"""Writer of filters: ``parse(write(f)) == f``, with minimal parentheses."""

from collections.abc import Callable
from types import UnionType
from typing import assert_never

from storage.domain.filters.ast import (
    IS_SET,
    And,
    Comparison,
    Constant,
    Filter,
    IsSet,
    Match,
    Not,
    Or,
    fold,
    operands_of,
)
from storage.domain.filters.literals import write_literal
from storage.domain.values.edm import Edm, EdmValue


def write(root: Filter, literal: Callable[[EdmValue], str] = write_literal) -> str:
    """Serialize a filter; ``literal`` replaces the serialization of its values."""
    return fold(root, lambda node, operands: _write(node, operands, literal))


def _write(node: Filter, operands: list[str], literal: Callable[[EdmValue], str]) -> str:
    match node:
        case Comparison(name, operator, value):
            return f"{name} {operator} {literal(value)}"
        case Match(name, kind, text):
            return f"{kind}({name},{literal(EdmValue(Edm.STRING, text))})"
        case IsSet(name):
            return f"{IS_SET}({name})"
        case Constant(value):
            return "true" if value else "false"
        case Not():
            # always with parentheses: other readers let a bare ``not`` bind tighter than ``eq``
            return f"not ({operands[0]})"
        case And():
            return " and ".join(_grouped(node, operands, And | Or))
        case Or():
            return " or ".join(_grouped(node, operands, Or))
        case _:
            assert_never(node)


def _grouped(node: Filter, operands: list[str], looser: type | UnionType) -> list[str]:
    return [
        f"({text})" if isinstance(operand, looser) else text
        for operand, text in zip(operands_of(node), operands, strict=True)
    ]
