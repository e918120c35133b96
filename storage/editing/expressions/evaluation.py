"""Evaluation scope of expressions for an entity, and evaluation errors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from storage.domain.values.edm import EdmValue
from storage.domain.values.ticks import to_ticks
from storage.editing.conversions import Loss
from storage.editing.input_context import InputContext

TEXT_LIMIT: Final = 2 * 1024 * 1024  # characters of a text in an expression; no entity can hold more


class Fault(StrEnum):
    """Reason why an expression has no value for an entity."""

    WRONG_TYPE = "wrong type"
    OUT_OF_RANGE = "out of range"
    DIVISION_BY_ZERO = "division by zero"
    NOT_CONVERTIBLE = "not convertible"
    TOO_LONG = "too long"


class EvaluationError(Exception):
    """Evaluation failed; ``detail`` holds the unsupported types or the problem with a text."""

    def __init__(self, fault: Fault, detail: str = "") -> None:
        self.fault = fault
        self.detail = detail
        super().__init__(fault, detail)


@dataclass(slots=True)
class Scope:
    """Environment of an expression: properties by name (None if absent), context, and collected losses."""

    read: Callable[[str], EdmValue | None]
    context: InputContext
    losses: list[Loss] = field(default_factory=list)

    @property
    def ticks(self) -> int:
        return to_ticks(self.context.now)
