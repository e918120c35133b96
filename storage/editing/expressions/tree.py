"""Syntax tree of expressions; each node has its possible types before any entity is read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from storage.domain.values.edm import Edm, EdmValue
from storage.editing.expressions.evaluation import EvaluationError, Fault, Scope
from storage.editing.expressions.functions import COALESCE, Function

Evaluate = Callable[[Scope], EdmValue | None]
ANY_TYPE = frozenset(Edm)


@dataclass(frozen=True, slots=True)
class Constant:
    value: EdmValue

    @property
    def types(self) -> frozenset[Edm]:
        return frozenset({self.value.type})


@dataclass(frozen=True, slots=True)
class Property:
    """A property, or PartitionKey, RowKey or Timestamp."""

    name: str
    types: frozenset[Edm] = ANY_TYPE  # types that its value can have


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a function or operator; ``depth`` is that of the tree below."""

    function: Function
    arguments: tuple["Expression", ...]
    types: frozenset[Edm]
    depth: int


Expression: TypeAlias = Constant | Property | Call


def depth(node: Expression) -> int:
    return node.depth if isinstance(node, Call) else 0


def mentioned_properties(node: Expression) -> Iterator[str]:
    """Yield the names of the properties in an expression."""
    if isinstance(node, Property):
        yield node.name
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from mentioned_properties(argument)


def compile(node: Expression) -> Evaluate:
    """Compile an expression to a function that returns None for a missing property; raises EvaluationError."""
    match node:
        case Constant(value):
            return lambda _: value
        case Property(name):
            return lambda scope: scope.read(name)
        case Call(function, arguments) if function is COALESCE:
            return _coalesce(tuple(map(compile, arguments)))
        case Call(function, arguments):
            return _call(function, tuple(map(compile, arguments)))


def _coalesce(arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(scope: Scope) -> EdmValue | None:
        return next((value for it in arguments if (value := it(scope)) is not None), None)

    return evaluate


def _call(function: Function, arguments: tuple[Evaluate, ...]) -> Evaluate:
    signatures = function.signatures

    def evaluate(scope: Scope) -> EdmValue | None:
        values = []
        for argument in arguments:
            value = argument(scope)
            if value is None:
                return None
            values.append(value)
        signature = signatures.get(tuple([it.type for it in values]))
        if signature is None:
            types = ", ".join(it.type.short_name for it in values)
            raise EvaluationError(Fault.WRONG_TYPE, f"{function.name} of {types}")
        return EdmValue(signature.result, signature.apply(scope, *[it.value for it in values]))

    return evaluate
