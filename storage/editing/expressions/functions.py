"""Functions and operators of expressions: result type and implementation for each combination of types.

Numbers follow the rules of OData: Int32 with Int32 gives Int32, with Int64 Int64, and anything with Double
Double. A result that exceeds its type is an error, never another type: values of a property keep their type.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from itertools import product
from typing import Any, Final

from storage.domain.values.edm import (
    FIRST_COSMOS_TICK,
    FIRST_TICKS,
    INT32,
    INT64,
    LAST_TICK,
    TICKS_PER_SECOND,
    Edm,
    EdmValue,
    second_text,
)
from storage.editing.conversions import Loss, convert
from storage.editing.expressions.evaluation import TEXT_LIMIT, EvaluationError, Fault, Scope
from storage.editing.invalid_text import InvalidText
from storage.editing.time_patterns import read_pattern
from storage.editing.typed_text import write

Types = tuple[Edm, ...]
Apply = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Signature:
    """Overload of a function: result type, and implementation from a Scope and argument values."""

    result: Edm
    apply: Apply


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """Function with its documentation; one without signatures takes values of any type."""

    name: str
    usage: str
    description: str
    signatures: Mapping[Types, Signature]


_INTEGERS: Final = (Edm.INT32, Edm.INT64)
_NUMBERS: Final = (*_INTEGERS, Edm.DOUBLE)
_RANGES: Final = {Edm.INT32: INT32, Edm.INT64: INT64}
_EXACT: Final = 2**53  # doubles up to it hold digits after the point
_ROUNDING: Final = Context(prec=60)
_MOST_DIGITS: Final = 15


def _checked(value: int, type_: Edm) -> int:
    if value not in _RANGES[type_]:
        raise EvaluationError(Fault.OUT_OF_RANGE, type_.short_name)
    return value


def _double(scope: Scope, number: float) -> float:
    double = float(number)
    if double != number and not math.isnan(double):
        scope.losses.append(Loss.PRECISION)
    return double


# arithmetic


def _arithmetic(whole: Apply, broken: Apply) -> dict[Types, Signature]:
    """Return the overloads of an operator, from its implementations for whole numbers and Doubles."""
    signatures: dict[Types, Signature] = {}
    for left, right in product(_NUMBERS, _NUMBERS):
        if Edm.DOUBLE in (left, right):
            signatures[left, right] = Signature(Edm.DOUBLE, partial(_with_doubles, broken))
        else:
            result = Edm.INT64 if Edm.INT64 in (left, right) else Edm.INT32
            signatures[left, right] = Signature(result, partial(_with_integers, whole, result))
    return signatures


def _with_integers(compute: Apply, result: Edm, scope: Scope, left: int, right: int) -> int:
    try:
        return _checked(compute(left, right), result)
    except ZeroDivisionError:
        raise EvaluationError(Fault.DIVISION_BY_ZERO) from None


def _with_doubles(compute: Apply, scope: Scope, left: float, right: float) -> float:
    left, right = _double(scope, left), _double(scope, right)
    try:
        result: float = compute(left, right)
    except ZeroDivisionError:
        raise EvaluationError(Fault.DIVISION_BY_ZERO) from None
    if math.isinf(result) and math.isfinite(left) and math.isfinite(right):
        raise EvaluationError(Fault.OUT_OF_RANGE, Edm.DOUBLE.short_name)
    return result


def _divide_whole(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _divide_whole(left, right)


def _remainder_of_doubles(left: float, right: float) -> float:
    if right == 0:
        raise ZeroDivisionError
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _negate(type_: Edm, scope: Scope, number: float) -> float:
    return -number if type_ is Edm.DOUBLE else _checked(-int(number), type_)


def _of_numbers(apply: Callable[[float], float]) -> dict[Types, Signature]:
    """Return the overloads of a function that leaves whole numbers unchanged."""
    whole: dict[Types, Signature] = {
        (type_,): Signature(type_, lambda _, number: number) for type_ in _INTEGERS
    }
    return {**whole, (Edm.DOUBLE,): Signature(Edm.DOUBLE, lambda _, number: _rounded(apply, number))}


def _rounded(apply: Callable[[float], float], number: float) -> float:
    return math.copysign(apply(number), number) if abs(number) < _EXACT else number


def _round(_: Scope, number: float, digits: int = 0) -> float:
    if not 0 <= digits <= _MOST_DIGITS:
        raise EvaluationError(Fault.OUT_OF_RANGE, f"0 to {_MOST_DIGITS} digits")
    if not abs(number) < _EXACT:
        return number
    return float(Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, context=_ROUNDING))


_ROUND: Final[Mapping[Types, Signature]] = {
    **_of_numbers(abs),
    (Edm.DOUBLE,): Signature(Edm.DOUBLE, _round),
    **{(Edm.DOUBLE, digits): Signature(Edm.DOUBLE, _round) for digits in _INTEGERS},
    **{
        (number, digits): Signature(number, lambda _, number, digits: number)
        for number, digits in product(_INTEGERS, _INTEGERS)
    },
}


# texts, in characters


def _text(apply: Callable[..., Any], arguments: int = 1, result: Edm = Edm.STRING) -> dict[Types, Signature]:
    return {(Edm.STRING,) * arguments: Signature(result, lambda _, *texts: apply(*texts))}


def _concatenate(left: str, right: str) -> str:
    if len(left) + len(right) > TEXT_LIMIT:
        raise EvaluationError(Fault.TOO_LONG)
    return left + right


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(text) + text.count(old) * (len(new) - len(old)) > TEXT_LIMIT:
        raise EvaluationError(Fault.TOO_LONG)
    return text.replace(old, new)


def _substring(_: Scope, text: str, start: int, length: int | None = None) -> str:
    begin = max(0, start + len(text)) if start < 0 else start
    return text[begin:] if length is None else text[begin : begin + max(0, length)]


_SUBSTRING: Final[Mapping[Types, Signature]] = {
    (Edm.STRING, *numbers): Signature(Edm.STRING, _substring)
    for count in (1, 2)
    for numbers in product(_INTEGERS, repeat=count)
}

_PAD_LIMIT: Final = 1024  # characters, as many as a key can have at most


def _pad(_: Scope, value: str | int, width: int) -> str:
    """Write digits with leading zeros, so that texts sort like numbers; a longer value stays as it is."""
    if not 0 <= width <= _PAD_LIMIT:
        raise EvaluationError(Fault.OUT_OF_RANGE, f"0 to {_PAD_LIMIT} characters")
    text = str(value)
    if text.isascii() and text.isdigit():
        return text.rjust(width, "0")
    if isinstance(value, int):
        raise EvaluationError(Fault.OUT_OF_RANGE, "a negative number")
    raise EvaluationError(Fault.NOT_CONVERTIBLE, "not only digits")


_PAD: Final[Mapping[Types, Signature]] = {
    pair: Signature(Edm.STRING, _pad) for pair in product((Edm.STRING, *_INTEGERS), _INTEGERS)
}


# times


def _add_time(unit: int, scope: Scope, ticks: int, number: float) -> int:
    try:
        moved = ticks + round(number * unit * TICKS_PER_SECOND)
    except (ValueError, OverflowError):
        raise EvaluationError(Fault.OUT_OF_RANGE, Edm.DATETIME.short_name) from None
    if not FIRST_COSMOS_TICK <= moved <= LAST_TICK:
        raise EvaluationError(Fault.OUT_OF_RANGE, Edm.DATETIME.short_name)
    return moved


def _adding(seconds: int) -> dict[Types, Signature]:
    return {(Edm.DATETIME, type_): Signature(Edm.DATETIME, partial(_add_time, seconds)) for type_ in _NUMBERS}


def _part(start: int, end: int) -> dict[Types, Signature]:
    """Return the overload that extracts a part of a time, by its position in 2017-08-30T13:20:33."""

    def read(_: Scope, ticks: int) -> int:
        return int(second_text(ticks // TICKS_PER_SECOND)[start:end])

    return {(Edm.DATETIME,): Signature(Edm.INT32, read)}


# conversions

_CONVERTED_FROM: Final[Mapping[Edm, tuple[Edm, ...]]] = {
    Edm.STRING: tuple(Edm),
    Edm.BOOLEAN: (Edm.STRING, Edm.BOOLEAN, *_NUMBERS),
    Edm.INT32: (Edm.STRING, Edm.BOOLEAN, *_NUMBERS),
    Edm.INT64: (Edm.STRING, Edm.BOOLEAN, *_NUMBERS),
    Edm.DOUBLE: (Edm.STRING, Edm.BOOLEAN, *_NUMBERS),
    Edm.DATETIME: (Edm.STRING, Edm.DATETIME),
    Edm.GUID: (Edm.STRING, Edm.BINARY, Edm.GUID),
    Edm.BINARY: (Edm.STRING, Edm.GUID, Edm.BINARY),
}


def converted(value: EdmValue, to: Edm, scope: Scope) -> EdmValue:
    """Convert a value like the console's editors, noting losses; raises EvaluationError."""
    try:
        conversion = convert(value, to, scope.context)
    except InvalidText as error:
        raise EvaluationError(Fault.NOT_CONVERTIBLE, error.fault) from None
    if conversion.loss is not None:
        scope.losses.append(conversion.loss)
    return conversion.value


def _double_of(text: str, scope: Scope) -> float:
    """Convert a text to a Double; zeros at the end of its fraction are no loss, as the expression asks for a number."""
    before = len(scope.losses)
    number: float = converted(EdmValue(Edm.STRING, text), Edm.DOUBLE, scope).value  # type: ignore[assignment]
    if scope.losses[before:] == [Loss.SPELLING] and _plain(text) == _plain(
        write(EdmValue(Edm.DOUBLE, number))
    ):
        scope.losses.pop()
    return number


def _plain(number: str) -> str:
    return number.rstrip("0").removesuffix(".") if "." in number else number


def _datetime_by_pattern(scope: Scope, text: str, pattern: str) -> int:
    try:
        return read_pattern(pattern).read(text, FIRST_TICKS[scope.context.kind])
    except InvalidText as error:
        raise EvaluationError(Fault.NOT_CONVERTIBLE, error.fault) from None


def _conversion(to: Edm) -> Function:
    def apply(given: Edm, scope: Scope, value: Any) -> Any:
        if (to, given) == (Edm.DOUBLE, Edm.STRING):
            return _double_of(value, scope)
        return converted(EdmValue(given, value), to, scope).value

    name, article = to.short_name, "an" if to.short_name[0] == "I" else "a"
    return Function(
        name.lower(),
        f"{name.lower()}(x)",
        f"x as {article} {name}.",
        {(given,): Signature(to, partial(apply, given)) for given in _CONVERTED_FROM[to]},
    )


_AS_DATETIME: Final = _conversion(Edm.DATETIME)
# its pattern is checked with the expression, so it must be a constant
DATETIME: Final = Function(
    _AS_DATETIME.name,
    "datetime(s, 'dd.MM.yyyy')",
    "s as a DateTime, written as the pattern says; without a pattern in the form of ISO 8601.",
    {**_AS_DATETIME.signatures, (Edm.STRING, Edm.STRING): Signature(Edm.DATETIME, _datetime_by_pattern)},
)
ADD: Final = Function(
    "+",
    "a + b",
    "Sum of numbers; two texts one after the other.",
    {**_arithmetic(operator.add, operator.add), **_text(_concatenate, 2)},
)
SUBTRACT: Final = Function("-", "a - b", "Difference of numbers.", _arithmetic(operator.sub, operator.sub))
MULTIPLY: Final = Function("*", "a * b", "Product of numbers.", _arithmetic(operator.mul, operator.mul))
DIVIDE: Final = Function(
    "/",
    "a / b",
    "Quotient, always a Double.",
    {
        pair: Signature(Edm.DOUBLE, partial(_with_doubles, operator.truediv))
        for pair in product(_NUMBERS, _NUMBERS)
    },
)
DIVIDE_WHOLE: Final = Function(
    "div",
    "a div b",
    "Quotient, of whole numbers without its fraction.",
    _arithmetic(_divide_whole, operator.truediv),
)
REMAINDER: Final = Function(
    "%",
    "a % b",
    "Remainder, with the sign of a.",
    _arithmetic(_remainder, _remainder_of_doubles),
)
NEGATE: Final = Function(
    "-",
    "-a",
    "The number with the other sign.",
    {(type_,): Signature(type_, partial(_negate, type_)) for type_ in _NUMBERS},
)
# the last argument decides, so it is not computed like the others
COALESCE: Final = Function("coalesce", "coalesce(a, b, …)", "The first that is not missing.", {})
CONCATENATE: Final = Function(
    "concat", "concat(a, b, …)", "The texts one after another.", _text(_concatenate, 2)
)
CHAINED: Final = (COALESCE, CONCATENATE)  # take two arguments or more

FUNCTIONS: Final[Mapping[str, Function]] = {
    function.name: function
    for function in (
        COALESCE,
        CONCATENATE,
        Function("upper", "upper(s)", "The text in capital letters.", _text(str.upper)),
        Function("lower", "lower(s)", "The text in small letters.", _text(str.lower)),
        Function("trim", "trim(s)", "The text without white space around it.", _text(str.strip)),
        Function(
            "substring",
            "substring(s, start, length)",
            "Characters from a place on, counted from 0, or back from the end if negative; all without a length.",
            _SUBSTRING,
        ),
        Function(
            "replace",
            "replace(s, old, new)",
            "The text with one part in the place of another, wherever it occurs.",
            _text(_replace, 3),
        ),
        Function(
            "pad",
            "pad(x, width)",
            "The digits of a text or whole number with zeros before them, so that texts sort like numbers.",
            _PAD,
        ),
        Function("length", "length(s)", "The number of characters.", _text(len, 1, Edm.INT32)),
        Function(
            "indexof",
            "indexof(s, part)",
            "Where the part begins, -1 if nowhere.",
            _text(str.find, 2, Edm.INT32),
        ),
        Function(
            "round",
            "round(x, digits)",
            "The nearest number with so many digits after the point, none if left out; halves away from zero.",
            _ROUND,
        ),
        Function("floor", "floor(x)", "The whole number below.", _of_numbers(math.floor)),
        Function("ceiling", "ceiling(x)", "The whole number above.", _of_numbers(math.ceil)),
        Function("now", "now()", "When the edit began.", {(): Signature(Edm.DATETIME, lambda it: it.ticks)}),
        Function(
            "adddays",
            "adddays(t, n)",
            "The time n days later; also addhours, addminutes, addseconds.",
            _adding(86_400),
        ),
        Function("addhours", "addhours(t, n)", "The time n hours later.", _adding(3600)),
        Function("addminutes", "addminutes(t, n)", "The time n minutes later.", _adding(60)),
        Function("addseconds", "addseconds(t, n)", "The time n seconds later.", _adding(1)),
        Function(
            "year",
            "year(t)",
            "A part of the time in UTC; also month, day, hour, minute, second.",
            _part(0, 4),
        ),
        Function("month", "month(t)", "The month, from 1.", _part(5, 7)),
        Function("day", "day(t)", "The day of the month.", _part(8, 10)),
        Function("hour", "hour(t)", "The hour, from 0.", _part(11, 13)),
        Function("minute", "minute(t)", "The minute.", _part(14, 16)),
        Function("second", "second(t)", "The second.", _part(17, 19)),
        *(_conversion(type_) for type_ in Edm if type_ is not Edm.DATETIME),
        DATETIME,
    )
}
# by their signs and by the words of OData, with their precedence
OPERATORS: Final[Mapping[str, tuple[int, Function]]] = {
    "+": (1, ADD),
    "add": (1, ADD),
    "-": (1, SUBTRACT),
    "sub": (1, SUBTRACT),
    "*": (2, MULTIPLY),
    "mul": (2, MULTIPLY),
    "/": (2, DIVIDE),
    "div": (2, DIVIDE_WHOLE),
    "%": (2, REMAINDER),
    "mod": (2, REMAINDER),
}
# OData's names
SYNONYMS: Final[Mapping[str, str]] = {"toupper": "upper", "tolower": "lower"}
