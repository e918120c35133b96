"""Lint: likely mistakes in a valid filter, judged by the properties of the entities."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple

from storage.domain.filters.lexer import Token, tokenize_leniently
from storage.domain.filters.literals import is_literal, read_int64, read_literal, write_literal
from storage.domain.values.edm import INT32, Edm, EdmValue
from storage.editing.conversions import Loss, convert
from storage.editing.filters.highlight import HighlightClass, classify_tokens
from storage.editing.filters.suggestions import Finding, FixReason, Suggestion
from storage.editing.filters.suggestions import LintRule as LintRule
from storage.editing.invalid_text import InvalidText

KnownTypes = Mapping[str, Sequence[Edm]]  # the types of each property of the entities

SYSTEM_TYPES: Final[KnownTypes] = {
    "PartitionKey": (Edm.STRING,),
    "RowKey": (Edm.STRING,),
    "Timestamp": (Edm.DATETIME,),
}
FINDING_LIMIT: Final = 5  # findings per filter; others appear once these are fixed
_NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})


class _Mention(NamedTuple):
    """A property in a filter, and the literal that it is compared with."""

    property: Token
    literal: Token | None


def lint_filter(text: str, known: KnownTypes, now: datetime) -> list[Finding]:
    """Return the first findings of a valid filter; ``known`` is empty for an empty table."""
    found = list(classify_tokens(tokenize_leniently(text)))
    findings = (
        finding
        for mention in _mentions(found)
        for finding in (
            _check_suffix(mention),
            _check_name(mention, known),
            _check_type(mention, text, known, now),
        )
        if finding is not None
    )
    return list(islice(findings, FINDING_LIMIT))


def is_comparable(asked: Edm, stored: Sequence[Edm]) -> bool:
    """Return whether a literal of the type can equal a stored value."""
    is_any_number = asked in (Edm.INT32, Edm.DOUBLE)
    return asked in stored or (is_any_number and not _NUMBERS.isdisjoint(stored))


def similar_property(name: str, known: KnownTypes) -> str | None:
    """Return the most similar known property."""
    folded = {other.lower(): other for other in (*SYSTEM_TYPES, *known)}
    close = get_close_matches(name.lower(), folded, 1)
    return folded[close[0]] if close else None


def _mentions(found: Sequence[tuple[Token, HighlightClass]]) -> Iterator[_Mention]:
    for index, (token, paint) in enumerate(found):
        if paint is not HighlightClass.PROPERTY:
            continue
        if index + 1 < len(found) and found[index + 1][1] is HighlightClass.OPERATOR:
            yield _Mention(token, found[index + 2][0])
        elif index > 1 and found[index - 1][1] is HighlightClass.OPERATOR:
            yield _Mention(token, found[index - 2][0])
        else:
            yield _Mention(token, None)


def _check_suffix(mention: _Mention) -> Finding | None:
    token = mention.literal
    number = None if token is None else read_int64(token.text)
    if token is None or number is None or number in INT32:
        return None
    fix = Suggestion(token.end, token.end, "L", FixReason.INT64_SUFFIX)
    name = mention.property.text
    return Finding(token.start, token.end, (fix,), LintRule.INT64_SUFFIX, name, Edm.INT32, (Edm.INT64,))


def _check_name(mention: _Mention, known: KnownTypes) -> Finding | None:
    token = mention.property
    if not known or token.text in known or token.text in SYSTEM_TYPES:
        return None
    similar = similar_property(token.text, known)
    fixes = (Suggestion(token.start, token.end, similar, FixReason.STORED_NAME),) if similar else ()
    return Finding(token.start, token.end, fixes, LintRule.UNKNOWN_PROPERTY, token.text)


def _check_type(mention: _Mention, text: str, known: KnownTypes, now: datetime) -> Finding | None:
    token, name = mention.literal, mention.property.text
    types = SYSTEM_TYPES.get(name) or known.get(name)
    if token is None or types is None or not is_literal(token):
        return None
    value = read_literal(token, text, now)
    if is_comparable(value.type, types):
        return None
    converted = (_converted(value, type_, now) for type_ in types)
    fixes = tuple(
        Suggestion(token.start, token.end, it, FixReason.STORED_TYPE) for it in converted if it is not None
    )
    return Finding(token.start, token.end, fixes, LintRule.OTHER_TYPE, name, value.type, tuple(types))


def _converted(value: EdmValue, to: Edm, now: datetime) -> str | None:
    try:
        converted = convert(value, to, now)
    except InvalidText:
        return None
    return write_literal(converted.value) if converted.loss in (None, Loss.SPELLING) else None
