"""Parameters of a filter: ``{{tenant}}`` for a value, ``datetime'{{now-24h}}'`` for a time relative to the run.

In quotes, a value is text whose apostrophes are doubled; outside of them it must be one literal. So a value cannot
change the structure of the filter.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from storage.domain.errors import StorageError
from storage.domain.filters.ast import Operator
from storage.domain.filters.lexer import QUOTED, Token, TokenKind, tokenize
from storage.domain.filters.literals import is_literal, read_literal
from storage.domain.refusals import Reason, Refused

_PARAMETER = re.compile(r"\{\{\s*(?!now\s*\}\})([^\W\d]\w{0,63})\s*\}\}")
_QUOTED_OR_PARAMETER = re.compile(rf"(?P<quoted>{QUOTED})|{_PARAMETER.pattern}")


class UnfilledParameter(Refused):
    """A parameter without a usable value."""

    def __init__(self, reason: Reason, name: str) -> None:
        super().__init__(reason)
        self.name = name


def list_parameters(text: str) -> tuple[str, ...]:
    """Return the distinct parameter names in order."""
    parameters: dict[str, None] = {}
    for match in _QUOTED_OR_PARAMETER.finditer(text):
        names = _PARAMETER.findall(match["quoted"]) if match["quoted"] else [match[2]]
        parameters.update(dict.fromkeys(names))
    return tuple(parameters)


def fill_parameters(text: str, values: Mapping[str, str]) -> str:
    """Replace parameters by values, keeping relative times; raises UnfilledParameter."""

    def filled(match: re.Match[str]) -> str:
        if match["quoted"]:
            return _PARAMETER.sub(lambda place: _value(values, place[1]).replace("'", "''"), match["quoted"])
        return _apart(match, _literal(match[2], _value(values, match[2])))

    return _QUOTED_OR_PARAMETER.sub(filled, text)


# between the quotes, by the word before them
_SAMPLES: Final = {
    "datetime": "'2000-01-01T00:00:00Z'", "guid": "'00000000-0000-0000-0000-000000000000'", "x": "'00'",
    "binary": "'00'",
}  # fmt: skip
_WORD_BEFORE = re.compile(r"\w*$")


def fill_samples(text: str) -> list[str]:
    """Return the filter with sample literals for its parameters; it can only be valid if one of them is."""

    def filled(bare: str) -> str:
        def fill(match: re.Match[str]) -> str:
            if not match["quoted"]:
                return _apart(match, bare)
            if not _PARAMETER.search(match["quoted"]):
                return match["quoted"]
            word = _WORD_BEFORE.search(text[: match.start()])
            return _SAMPLES.get(word[0].lower() if word else "", "'a'")

        return _QUOTED_OR_PARAMETER.sub(fill, text)

    return [filled("1"), filled("'a'")]


def _value(values: Mapping[str, str], name: str) -> str:
    if name not in values:
        raise UnfilledParameter(Reason.PARAMETER_MISSING, name)
    return values[name]


def _literal(name: str, value: str) -> str:
    try:
        literal, *rest = tokenize(value)
        if is_literal(literal) and [token.kind for token in rest] == [TokenKind.END]:
            read_literal(literal, value)
            return literal.text
    except StorageError:
        pass
    raise UnfilledParameter(Reason.PARAMETER_NOT_A_LITERAL, name)


def _apart(place: re.Match[str], literal: str) -> str:
    """Separate a literal from its neighbours by spaces, as adjacent strings would merge."""
    before, after = place.string[: place.start()][-1:], place.string[place.end() :][:1]
    left = " " if before and before not in " \t\r\n(," else ""
    right = " " if after and after not in " \t\r\n)," else ""
    return f"{left}{literal}{right}"


_NAME: Final = re.compile(r"[^\W\d]\w*")
_LONGEST: Final = 60
_OPERATORS: Final = frozenset(Operator)


class ParameterSuggestion(NamedTuple):
    """Literal that could become a parameter, with the property compared and a name for the parameter."""

    compared: str
    literal: str
    name: str
    start: int

    @property
    def place(self) -> str:
        before, quote, _ = self.literal.partition("'")
        return f"{before}'{{{{{self.name}}}}}'" if quote else f"{{{{{self.name}}}}}"

    @property
    def value(self) -> str:
        """Return the parameter value equivalent to the literal."""
        _, quote, rest = self.literal.partition("'")
        return rest[:-1].replace("''", "'") if quote else self.literal


def suggest_parameters(text: str) -> list[ParameterSuggestion]:
    """Suggest a parameter for each literal of a valid filter, apart from existing ones."""
    suggestions: list[ParameterSuggestion] = []
    for compared, literal in _compared(text):
        name = _free_name(compared.text, {suggestion.name for suggestion in suggestions})
        suggestions.append(ParameterSuggestion(compared.text, literal.text, name, literal.start))
    return suggestions


def add_parameters(text: str, names: Collection[str]) -> str:
    """Replace the literals of suggestions with these names by parameters."""
    for suggestion in reversed(suggest_parameters(text)):
        if suggestion.name in names:
            text = (
                text[: suggestion.start]
                + suggestion.place
                + text[suggestion.start + len(suggestion.literal) :]
            )
    return text


def _compared(text: str) -> Iterator[tuple[Token, Token]]:
    try:
        tokens = tokenize(text)
    except StorageError:
        return
    for left, between, right in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_compared = between.kind is TokenKind.COMMA or between.text in _OPERATORS
        if left.kind is TokenKind.NAME and is_compared and is_literal(right) and "{{" not in right.text:
            yield left, right


def _free_name(property_name: str, taken: Collection[str]) -> str:
    start = property_name[:_LONGEST] if _NAME.fullmatch(property_name) else "value"
    names = (start, *(f"{start}{number}" for number in range(2, len(taken) + 4)))
    return next(name for name in names if name not in taken and name != "now")
