"""Redaction of requests for the log: only recognized parts are kept."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

from storage.domain.access.addresses import read_range
from storage.domain.errors import StorageError
from storage.domain.filters.lexer import Token, TokenKind, tokenize_leniently
from storage.domain.filters.parser import parse
from storage.domain.filters.writer import write
from storage.domain.sas import SAS_NAMES
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import PROPERTY_NAME_LIMIT, fold_table_name, is_account_name

LEFT_OUT: Final = "…"
_LIMIT: Final = 2048  # characters
_MOST_OPTIONS: Final = 50

# signatures in messages, which may name what a client has sent

_S, _I, _G = (
    rf"(?:{letter}|%(?:25)*{codes})" for letter, codes in (("s", "[57]3"), ("i", "[46]9"), ("g", "[46]7"))
)
# also with letters of the name or the characters around it percent-encoded, once or several times
_SIGNATURE: Final = re.compile(
    rf"""({_S}{_I}{_G} ["']? (?:\s|%(?:25)*20)* (?: [=:] | %(?:25)*3[ad] )) .*? (?= [&\#] | %(?:25)*26 | $ )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
# a signature with its name, credentials of a header, 32 or 64 bytes in base64, a JSON web token
_SECRET: Final = re.compile(
    r"""
      sig["']? \s* [=:] | accountkey | sharedkey | sharedaccess | \b(?:bearer|basic|digest) \s+ [A-Za-z0-9+/=_.~-]{12}
    | (?<![A-Za-z0-9+/_-]) (?: [A-Za-z0-9+/_-]{43}= | [A-Za-z0-9+/_-]{86}== ) | eyJ [A-Za-z0-9_-]{8,} \.
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ENCODED: Final = 5  # times that a text may be percent-encoded


def redact_signatures(text: str) -> str:
    """Redact the signatures in a URL or a part of one."""
    return _SIGNATURE.sub(r"\1XXXXX", text)


def holds_secret(text: str) -> bool:
    """Return whether a text contains a signature or other credentials, percent-encoded or not."""
    for _ in range(_ENCODED):
        if _SECRET.search(text):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return "%" in text


def clean_words(text: str) -> str:
    """Replace words that may hold credentials in a text that a client chooses, such as its name or a request id."""
    if not holds_secret(text):
        return text
    words = " ".join(LEFT_OUT if holds_secret(word) else word for word in text.split())
    return LEFT_OUT if holds_secret(words) else words


@lru_cache(maxsize=1024)
def clean_agent(raw: bytes) -> bytes:
    """Return the redacted User-Agent."""
    return clean_words(raw.decode("latin-1")).encode("latin-1", "replace")


# names and values with a form of their own

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "MERGE", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_VERSION: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER: Final = re.compile("-?[0-9]{1,18}")
_MD5: Final = re.compile("[A-Za-z0-9+/]{22}==")
_COSMOS_TABLE: Final = re.compile(r"[\w-]+")  # names without the signs of addresses
_LABEL: Final = re.compile("[A-Za-z0-9 _.-]{1,64}")
_DATE: Final = re.compile(
    "(?:[0-9 ,:.TZ+/-]|mon|tue|wed|thu|fri|sat|sun|day|nes|urs|ur|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|"
    "gmt|utc|am|pm){0,40}",
    re.IGNORECASE,
)
_MEDIA_TYPE: Final = re.compile(
    r"json|atom|(?:application/(?:json|atom\+xml|xml|http|octet-stream|x-www-form-urlencoded)|multipart/mixed|"
    r"text/(?:plain|xml|html|csv)|(?:application|text|\*)/\*)",
    re.IGNORECASE,
)
_MEDIA_PARAMETER: Final = re.compile(
    r"odata(?:\.metadata)?=(?:none|minimal|full|verbose|nometadata|minimalmetadata|fullmetadata)|streaming=(?:true|false)|"
    r"charset=(?:utf-?8|utf-16|us-ascii|iso-8859-1)|type=(?:entry|feed)|ieee754compatible=(?:true|false)|q=[0-9.]{1,5}",
    re.IGNORECASE,
)
# headers of all services, because a client may take one for the other
_COMPONENTS: Final = frozenset(
    {"acl", "batch", "block", "blocklist", "blobs", "copy", "lease", "list", "messages", "metadata"}
    | {"properties", "query", "range", "snapshot", "stats", "tags", "tier", "undelete", "userdelegationkey"}
)
_RESOURCES: Final = frozenset(
    {"account", "container", "directory", "file", "filesystem", "queue", "service", "share", "table"}
)


def _keep_if(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda text: text if not text or pattern.fullmatch(text) else LEFT_OUT


def _keep_one_of(words: frozenset[str]) -> Callable[[str], str]:
    return lambda text: text if not text or text in words else LEFT_OUT


clean_version: Final = _keep_if(_VERSION)
clean_integer: Final = _keep_if(_INTEGER)
clean_md5: Final = _keep_if(_MD5)
clean_date: Final = _keep_if(_DATE)


def clean_method(method: str) -> str:
    return method if method in METHODS else LEFT_OUT


def clean_media_type(text: str) -> str:
    """Keep known media types and parameters, replacing others."""
    if not text:
        return text
    cleaned = []
    for choice in text.split(","):
        kind, *parameters = (part.strip() for part in choice.split(";"))
        parts = [kind if _MEDIA_TYPE.fullmatch(kind) else LEFT_OUT]
        parts += (it if _MEDIA_PARAMETER.fullmatch(it.replace(" ", "")) else LEFT_OUT for it in parameters)
        cleaned.append(";".join(parts))
    media_type = ",".join(cleaned)
    return text if media_type == text.replace(" ", "") else media_type


def clean_table(name: str, kind: AccountKind = AccountKind.STORAGE) -> str:
    """Return a valid table name, otherwise an empty string; Cosmos names also need plain characters."""
    try:
        fold_table_name(name, kind)
    except StorageError:
        return ""
    return name if kind is AccountKind.STORAGE or _COSMOS_TABLE.fullmatch(name) else ""


def addressed_names(arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the account and table in a page's URL arguments, if they are valid names."""
    account, table = (str(arguments.get(name, "")) for name in ("account", "table"))
    found = {"account": account if is_account_name(account) else "", "table": clean_table(table)}
    return {name: text for name, text in found.items() if text}


def clean_property(name: str) -> str:
    """Return a valid property name, otherwise a placeholder."""
    return name if name.isidentifier() and len(name) <= PROPERTY_NAME_LIMIT else LEFT_OUT


def clean_label(text: str) -> str:
    """Return a user-defined name, such as a policy's, if it has only common characters, else a placeholder."""
    return text if not text or _LABEL.fullmatch(text) else LEFT_OUT


def _clean_select(text: str) -> str:
    names = (name.strip() for name in text.split(","))
    return ",".join(name if name in ("", "*") else clean_property(name) for name in names)


# values of shared access signatures, which may be malformed: the characters of their kind
_SAS_VALUES: Final[Mapping[str, Callable[[str], str]]] = {
    "sv": _keep_if(re.compile("[0-9-]{1,12}")),
    "tn": lambda text: clean_table(text) or LEFT_OUT,
    "sp": _keep_if(re.compile("[rwdlacuptfixymeo]{1,20}")),
    "ss": _keep_if(re.compile("[bqtf]{1,8}")),
    "srt": _keep_if(re.compile("[sco]{1,8}")),
    "st": _keep_if(re.compile("[0-9TZ:.+ -]{1,40}")),
    "se": _keep_if(re.compile("[0-9TZ:.+ -]{1,40}")),
    "sip": lambda text: (
        text if not text or read_range(text) or re.fullmatch("[0-9.-]{1,40}", text) else LEFT_OUT
    ),
    "spr": _keep_if(re.compile("[htps,]{1,12}")),
    "si": clean_label,
    "ses": clean_label,
}


def clean_sas_value(name: str, value: str) -> str:
    """Redact a SAS parameter for the log: the signature and the keys of its range are left out."""
    clean = _SAS_VALUES.get(name)
    if clean is None:
        return LEFT_OUT if value else ""
    return clean(value)


# options


_SAS_NAMES: Final = frozenset(name.lower() for name in SAS_NAMES)
# by names in lower case; the value of one without a function is left out
_OPTIONS: Final[Mapping[str, Callable[[str], str] | None]] = {
    "$filter": lambda text: clean_filter(text)[0],
    "$select": _clean_select,
    "$top": clean_integer,
    "$skip": clean_integer,
    "$format": clean_media_type,
    "comp": _keep_one_of(_COMPONENTS),
    "restype": _keep_one_of(_RESOURCES),
    "timeout": clean_integer,
    "api-version": clean_version,
    **dict.fromkeys(("nextpartitionkey", "nextrowkey", "nexttablename")),
    # options of OData that this service does not have
    **dict.fromkeys(
        ("$orderby", "$skiptoken", "$expand", "$inlinecount", "$count", "$search", "$apply", "$compute")
    ),
    **dict.fromkeys(
        ("$levels", "$id", "$value", "$links", "$callback", "$deltatoken", "$index", "$schemaversion")
    ),
}


def clean_option_name(name: str) -> str:
    """Return the name of a query option as sent if it is known in any letter case, otherwise a placeholder."""
    return name if name.lower() in _OPTIONS else LEFT_OUT


def clean_option(name: str, value: str) -> str:
    """Return the redacted value of a query option."""
    clean = _OPTIONS.get(name.lower())
    return LEFT_OUT if clean is None else clean(value)[:_LIMIT]


def clean_options(query: bytes) -> Iterator[tuple[str, str]]:
    """Yield the loggable options of a query string with redacted values, without the fields of a SAS.

    Options that the service does not know are yielded as a single placeholder.
    """
    has_unknown = False
    for part in query[:_LIMIT].split(b"&")[:_MOST_OPTIONS] if query else ():
        name, _, value = (
            unquote_to_bytes(it.replace(b"+", b" ")).decode(errors="replace") for it in part.partition(b"=")
        )
        if name.lower() in _OPTIONS:
            yield name, clean_option(name, value)
        else:
            has_unknown = has_unknown or name.lower() not in _SAS_NAMES
    if has_unknown:
        yield LEFT_OUT, LEFT_OUT


# filters

_RELATIONS: Final = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})
# in any case, with names of other dialects, which people write by mistake
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
        "has",
        "add",
        "sub",
        "mul",
        "div",
        "mod",
    ]
)
# not implemented by the service, and often the very reason of a refusal
_FUNCTIONS: Final = frozenset(
    {"startswith", "endswith", "contains", "substringof", "substring", "indexof", "replace", "concat", "trim"}
    | {
        "tolower",
        "toupper",
        "length",
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "now",
        "date",
        "time",
    }
    | {"round", "floor", "ceiling", "cast", "isof", "any", "all", "isset"}
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


def clean_filter(text: str, span: tuple[int, int] | None = None) -> tuple[str, tuple[int, int] | None]:
    """Redact the values in a filter; map ``span`` of the original to the redacted text."""
    if span is None:
        try:
            root = parse(text)
        except StorageError:
            pass
        else:
            if root is None:
                return "", None
            if not _has_bare_names(tokenize_leniently(text)):
                return write(root, lambda _: LEFT_OUT)[:_LIMIT], None
    return _clean_tokens(tokenize_leniently(text[:_LIMIT]), span)


def clean_filter_text(text: str) -> str:
    """Redact the values in a valid filter or a part of one, and keep the form of each, as in ``datetime'…'``."""
    return _clean_tokens(tokenize_leniently(text[:_LIMIT]), None, has_forms=True)[0]


def _has_bare_names(tokens: list[Token]) -> bool:
    """Return whether a name is not compared, which a Boolean property and an unquoted value have in common."""
    words = [token.text.lower() if token.kind is TokenKind.NAME else "" for token in tokens]
    neighbours = zip(["", *words], [*words[1:], ""], strict=False)
    return any(
        word not in _WORDS and _RELATIONS.isdisjoint(both)
        for word, both in zip(words, neighbours, strict=False)
        if word
    )


_FORMS: Final = {
    TokenKind.STRING: f"'{LEFT_OUT}'",
    TokenKind.DATETIME: f"datetime'{LEFT_OUT}'",
    TokenKind.GUID: f"guid'{LEFT_OUT}'",
    TokenKind.BINARY: f"X'{LEFT_OUT}'",
}


def _clean_tokens(
    tokens: list[Token], span: tuple[int, int] | None, *, has_forms: bool = False
) -> tuple[str, tuple[int, int] | None]:
    cleaned = ""
    end = 0
    cut: tuple[int, int] | None = None
    for index, token in enumerate(tokens):
        if token.start > end:
            cleaned += " "
        start, end = len(cleaned), token.end
        form = _FORMS.get(token.kind) if has_forms else None
        cleaned += form or _clean_token(tokens, index)
        is_reached = span is not None and token.end > span[0]
        if cut is None and (is_reached or token.kind is TokenKind.END) and span is not None:
            cut = start, len(cleaned)
    return cleaned, cut


def _clean_token(tokens: list[Token], index: int) -> str:
    token = tokens[index]
    is_sign = token.kind is TokenKind.UNREADABLE and len(token.text) == 1 and not token.text.isalnum()
    if is_sign or token.kind in _MARKS or (token.kind is TokenKind.NAME and _is_name(tokens, index)):
        return token.text
    return LEFT_OUT


def _is_name(tokens: list[Token], index: int) -> bool:
    """Return whether a word is an operator or certainly a property, rather than an unquoted value."""
    word, following = tokens[index].text, tokens[index + 1]
    if word.lower() in _WORDS or (word.lower() in _FUNCTIONS and following.kind is TokenKind.OPEN):
        return True
    before = tokens[index - 1].text if index else "("
    return before.lower() in _BEFORE_NAMES and following.text.lower() in _RELATIONS
