"""What is kept of addresses, options and filters: names, operators and places, but no keys and values of entities."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from storage.domain.errors import StorageError
from storage.domain.filters.lexer import Token, TokenKind, tokenize_leniently
from storage.domain.filters.parser import parse
from storage.domain.filters.writer import write
from storage.domain.sas import SAS_NAMES

LEFT_OUT: Final = "…"
_QUOTED: Final = re.compile(r"('|%27)(?:(?!\1).|\1\1)*(?:\1|$)", re.IGNORECASE | re.DOTALL)
_LIMIT: Final = 2048  # characters
# also with letters of the name or the characters around it percent-encoded, once or several times
_SIGNATURE: Final = re.compile(
    r"""
    ( (?: ^ | [?&;] | %(?:25)*(?:3f|26|3b) )
      (?: s | %(?:25)*[57]3 ) (?: i | %(?:25)*[46]9 ) (?: g | %(?:25)*[46]7 )
      (?: = | %(?:25)*3d ) )
    .*? (?= [&\#] | %(?:25)*26 | $ )
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# options whose values say what is asked for, not of what
_PLAIN: Final = frozenset({"$select", "$top", "$format", "comp", "restype", "timeout", "api-version"})
_RELATIONS: Final = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})
# in any case, with those of other dialects, which people write by mistake
_WORDS: Final = _RELATIONS | frozenset(
    [
        "and",
        "or",
        "not",
        "true",
        "false",
        "null",
        "in",
        "is",
        "like",
        "between",
        "equals",
        "neq",
        "gte",
        "lte",
        "und",
        "oder",
        "ve",
        "veya",
    ]
)
# not implemented by the service, and often the very reason of a refusal
_FUNCTIONS: Final = frozenset(
    {"startswith", "endswith", "contains", "substringof", "tolower", "toupper", "length"}
)
_BEFORE_NAMES: Final = frozenset({"and", "or", "not", "und", "oder", "ve", "veya", "(", ","})
_MARKS: Final = frozenset(
    {
        TokenKind.OPEN,
        TokenKind.CLOSE,
        TokenKind.COMMA,
        TokenKind.COLON,
        TokenKind.SLASH,
        TokenKind.MINUS,
        TokenKind.END,
    }
)


def redact_signatures(text: str) -> str:
    """Replace the value of every signature in a URL or a part of one."""
    return _SIGNATURE.sub(r"\1XXXXX", text)


def clean_text(text: str) -> str:
    """Leave out signatures and what is in single quotation marks, plain or percent-encoded: keys of entities."""
    return _QUOTED.sub(lambda quoted: f"'{LEFT_OUT}'", redact_signatures(text))


def clean_table(name: str) -> str:
    """Return what may be kept of the name of a table, in the place of which a client may have sent anything."""
    return name if name.isalnum() else clean_text(name)


def clean_path(path: bytes) -> str:
    """Decode a path and leave out the keys of an entity."""
    return clean_text(unquote_to_bytes(path[:_LIMIT]).decode(errors="replace"))


def clean_option(name: str, value: str) -> str:
    """Return what may be kept of the value of an option in the query string."""
    if name == "$filter":
        return clean_filter(value)[0]
    return value[:_LIMIT] if name in _PLAIN else LEFT_OUT


def clean_options(query: bytes) -> Iterator[tuple[str, str]]:
    """Yield the options of a query string with what may be kept of their values, without the fields of a SAS."""
    for part in query[:_LIMIT].split(b"&") if query else ():
        name, _, value = (
            unquote_to_bytes(it.replace(b"+", b" ")).decode(errors="replace") for it in part.partition(b"=")
        )
        if name.lower() not in _SAS_NAMES:
            yield clean_text(name), clean_option(name, value)


_SAS_NAMES: Final = frozenset(name.lower() for name in SAS_NAMES)


def clean_filter(text: str, span: tuple[int, int] | None = None) -> tuple[str, tuple[int, int] | None]:
    """Return a filter without its values, and the place in it of what is at ``span`` in the one that was sent."""
    if span is None:
        try:
            root = parse(text)
        except StorageError:
            pass
        else:
            return ("" if root is None else write(root, lambda _: LEFT_OUT))[:_LIMIT], None
    return _clean_tokens(tokenize_leniently(text[:_LIMIT]), span)


def _clean_tokens(tokens: list[Token], span: tuple[int, int] | None) -> tuple[str, tuple[int, int] | None]:
    cleaned = ""
    end = 0
    found: tuple[int, int] | None = None
    for index, token in enumerate(tokens):
        if token.start > end:
            cleaned += " "
        start, end = len(cleaned), token.end
        cleaned += _clean_token(tokens, index)
        is_reached = span is not None and token.end > span[0]
        if found is None and (is_reached or token.kind is TokenKind.END) and span is not None:
            found = start, len(cleaned)
    return cleaned, found


def _clean_token(tokens: list[Token], index: int) -> str:
    token = tokens[index]
    is_sign = token.kind is TokenKind.UNREADABLE and len(token.text) == 1 and not token.text.isalnum()
    if is_sign or token.kind in _MARKS or (token.kind is TokenKind.NAME and _is_name(tokens, index)):
        return token.text
    return LEFT_OUT


def _is_name(tokens: list[Token], index: int) -> bool:
    """Return whether a word is an operator or must be a property; a value may lack its quotation marks."""
    word, following = tokens[index].text, tokens[index + 1]
    if word.lower() in _WORDS or (word.lower() in _FUNCTIONS and following.kind is TokenKind.OPEN):
        return True
    before = tokens[index - 1].text if index else "("
    return before.lower() in _BEFORE_NAMES and following.text.lower() in _RELATIONS
