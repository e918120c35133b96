"""Filters of the table collection, whose only property is TableName."""

from storage.domain.filters.ast import And, Comparison, Constant, Filter, IsSet, Match, Not, Or, fold
from storage.domain.values.edm import Edm


def matches_table(root: Filter, name: str) -> bool:
    """Whether the filter keeps a table of this name; table names compare without regard to case."""
    folded = name.lower()

    def visit(node: Filter, operands: list[bool]) -> bool:
        match node:
            case Comparison():
                return _matches(node, folded)
            case Match() | IsSet():
                return False  # never asked of tables
            case Constant(value):
                return value
            case Not():
                return not operands[0]
            case And():
                return all(operands)
            case Or():
                return any(operands)

    return fold(root, visit)


def _matches(comparison: Comparison, folded: str) -> bool:
    literal = comparison.literal
    # any other property or type is as if missing [inferred]
    if comparison.property != "TableName" or literal.type is not Edm.STRING:
        return False
    return comparison.operator.holds(folded, str(literal.value).lower())
