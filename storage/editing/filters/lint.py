"""Lint: likely mistakes in a valid filter, judged by the properties of the entities."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple

from storage.domain.filters.lexer import Token, tokenize_leniently
from storage.domain.filters.literals import is_literal, read_int64, read_literal, write_literal
from storage.domain.refusals import Reason, Refusal
from storage.domain.values.edm import INT32, Edm, EdmValue
from storage.editing.conversions import Loss, convert
from storage.editing.filters.diagnostics import Diagnostic, KnownTypes, Schema, Severity, Suggestion
from storage.editing.filters.highlight import HighlightClass, classify_tokens
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import InvalidText

SYSTEM_TYPES: Final[KnownTypes] = {
    "PartitionKey": (Edm.STRING,),
    "RowKey": (Edm.STRING,),
    "Timestamp": (Edm.DATETIME,),
}
WARNING_LIMIT: Final = 5  # warnings per filter; others appear once these are fixed
_NUMBERS: Final = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})


class _Mention(NamedTuple):
    """Property in a filter with the literal compared."""

    property: Token
    literal: Token | None


def lint(text: str, schema: Schema, now: datetime) -> list[Diagnostic]:
    """Return the first warnings of a valid filter."""
    warnings = (
        warning
        for mention in _mentions(list(classify_tokens(tokenize_leniently(text))))
        for warning in (
            _check_suffix(mention),
            _check_name(mention, schema),
            _check_type(mention, text, schema.types, now),
        )
        if warning is not None
    )
    return list(islice(warnings, WARNING_LIMIT))


def _is_comparable(asked: Edm, stored: Sequence[Edm]) -> bool:
    """Return whether a literal of the type can equal a stored value."""
    is_any_number = asked in (Edm.INT32, Edm.DOUBLE)
    return asked in stored or (is_any_number and not _NUMBERS.isdisjoint(stored))


def _similar_properties(name: str, known: KnownTypes) -> list[str]:
    """Return the most similar known property, in a list of at most one."""
    folded = {other.lower(): other for other in (*SYSTEM_TYPES, *known)}
    return [folded[it] for it in get_close_matches(name.lower(), folded, 1)]


def _mentions(tokens: Sequence[tuple[Token, HighlightClass]]) -> Iterator[_Mention]:
    for index, (token, paint) in enumerate(tokens):
        if paint is not HighlightClass.PROPERTY:
            continue
        if index + 1 < len(tokens) and tokens[index + 1][1] is HighlightClass.OPERATOR:
            yield _Mention(token, tokens[index + 2][0])
        elif index > 1 and tokens[index - 1][1] is HighlightClass.OPERATOR:
            yield _Mention(token, tokens[index - 2][0])
        else:
            yield _Mention(token, None)


def _warn(token: Token, replacements: Iterable[str], refusal: Refusal) -> Diagnostic:
    fixes = tuple(Suggestion(token.start, token.end, it, refusal) for it in replacements)
    return Diagnostic(token.start, len(token.text), refusal, Severity.WARNING, fixes)


def _check_suffix(mention: _Mention) -> Diagnostic | None:
    token = mention.literal
    number = None if token is None else read_int64(token.text)
    if token is None or number is None or number in INT32:
        return None
    refusal = Reason.FILTER_INT64_SUFFIX.of(digits=token.text)
    fix = Suggestion(token.end, token.end, "L", refusal)
    return Diagnostic(token.start, len(token.text), refusal, Severity.WARNING, (fix,))


def _check_name(mention: _Mention, schema: Schema) -> Diagnostic | None:
    name = mention.property.text
    if not schema.types or name in schema.types or name in SYSTEM_TYPES:
        return None
    whole, sampled = Reason.FILTER_UNKNOWN_PROPERTY.of(name=name), Reason.FILTER_NOT_IN_SAMPLE.of(name=name)
    similar = _similar_properties(name, schema.types)
    return _warn(mention.property, similar, whole if schema.is_whole else sampled)


def _check_type(mention: _Mention, text: str, known: KnownTypes, now: datetime) -> Diagnostic | None:
    token, name = mention.literal, mention.property.text
    types = SYSTEM_TYPES.get(name) or known.get(name)
    if token is None or types is None or not is_literal(token):
        return None
    value = read_literal(token, text, now)
    if _is_comparable(value.type, types):
        return None
    converted = [literal for type_ in types if (literal := _converted(value, type_, now)) is not None]
    stored = ", ".join(type_.short_name for type_ in types)
    refusal = Reason.FILTER_OTHER_TYPE.of(name=name, types=stored, asked=value.type.short_name)
    return _warn(token, converted, refusal)


def _converted(value: EdmValue, to: Edm, now: datetime) -> str | None:
    try:
        converted = convert(value, to, InputContext.of_any_account(now))
    except InvalidText:
        return None
    return write_literal(converted.value) if converted.loss in (None, Loss.SPELLING) else None
