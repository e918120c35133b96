"""Patterns: regular expressions that convert the JSON of an entity to its row in one step."""

import json
import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from storage.domain.entities.annotations import ODATA_TYPE
from storage.domain.entities.entity import (
    KEY_PROPERTIES,
    EncodedProperties,
    EntityKey,
    Fragments,
    declared_start,
    quote_name,
)
from storage.domain.errors import StorageError
from storage.domain.values.edm import STRING_LIMIT, Edm, read_days
from storage.domain.values.kinds import AccountKind

# a captured text as JSON, and as it stands in the projection; None: it is unusual
_Convert = Callable[[str], tuple[str, str] | None]


def _convert_number(text: str) -> tuple[str, str] | None:
    if "." in text:
        return _convert_double(text)
    return None if text == "-0" else (text, text)


def _convert_double(text: str) -> tuple[str, str] | None:
    value = float(text)
    return (text, text) if value and repr(value) == text else None


def convert_datetime(text: str) -> tuple[str, str] | None:
    """Convert a DateTime to its storage and projection forms; None before the year 1601.

    Raises StorageError for an invalid day.
    """
    if text < "1601":
        return None
    read_days(text[:10])
    second, digits = text[:19], text[20:-1].rstrip("0")
    return f"{second}.{digits}Z" if digits else f"{second}Z", f"{second}.{digits.ljust(7, '0')}"


def convert_cosmos_datetime(text: str) -> tuple[str, str]:
    """Convert a DateTime to the forms that Cosmos accounts store; raises StorageError for an invalid day."""
    read_days(text[:10])
    whole = f"{text[:19]}.{text[20:-1].ljust(7, '0')}"
    return f"{whole}Z", whole


def _convert_binary(text: str) -> tuple[str, str] | None:
    if len(text) % 4 or (text[-1] == "=" and not _CLEAN_END(text)):
        return None  # is written otherwise when it is encoded
    try:
        return text, a2b_base64(text, strict_mode=True).hex()
    except (Base64Error, ValueError):
        return None


# the bits that padding leaves over are 0
_CLEAN_END: Final = re.compile(r"(?:[AQgw]=|[AEIMQUYcgkosw048])=\Z").search


class _Usual(NamedTuple):
    """Typical values of a type: their regular expression, and their form as JSON and in the projection."""

    expression: str
    value: str
    projection: str
    convert: _Convert | None = None


# escapes in their only form are stored as they are
_TEXT: Final = r'[ !#-\[\]-~]*+(?:\\["\\bfnrt][ !#-\[\]-~]*+)*+'
_PLAIN_TEXT: Final = r"[ !#-\[\]-~]*+"
_INTEGER: Final = r"-?(?:[1-9][0-9]{0,8}+|0)"
_STRING: Final = _Usual(f'"({_TEXT})"', '"%s"', '"s%s"')
_BOOLEAN: Final = _Usual("(true|false)", "%s", "%s")
_TIME: Final = r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,7}+)?+Z"
_DATETIME: Final = _Usual(f'"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_TIME})"', '"%s"', '"t%s"', convert_datetime)
_BY_JSON: Final = {
    str: _STRING,
    bool: _BOOLEAN,
    # a client writes a Double without a fraction as an integer
    int: _Usual(rf"({_INTEGER}(?:\.[0-9]++)?+)", "%s", "%s", _convert_number),
    float: _Usual(rf"({_INTEGER}(?:\.[0-9]++)?+)", "%s", "%s", _convert_number),
}
_STORAGE: Final[Mapping[object, _Usual]] = {
    Edm.STRING: _STRING,
    Edm.BOOLEAN: _BOOLEAN,
    Edm.INT32: _Usual("(-?[1-9][0-9]{0,8}+|0)", "%s", "%s"),
    Edm.INT64: _Usual('"(-?[1-9][0-9]{0,17}+|0)"', '"%s"', "%s.00"),
    Edm.DOUBLE: _Usual(rf"({_INTEGER}\.[0-9]++)", "%s", "%s", _convert_double),
    Edm.DATETIME: _DATETIME,
    Edm.GUID: _Usual('"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"', '"%s"', '"g%s"'),
    Edm.BINARY: _Usual('"([0-9A-Za-z+/]++={0,2}+)"', '"%s"', '"b%s"', _convert_binary),
}
_BY_ANNOTATION: Final[Mapping[AccountKind, Mapping[object, _Usual]]] = {
    AccountKind.STORAGE: _STORAGE,
    AccountKind.COSMOS: {**_STORAGE, Edm.DATETIME: _DATETIME._replace(convert=convert_cosmos_datetime)},
}
_PASSED_OVER: Final = f'"{_TEXT}"'

LONGEST: Final = STRING_LIMIT // 2  # characters of a body: so no value in it exceeds a limit
_MOST_MEMBERS: Final = 64  # to compile more takes over 10 ms
_MOST_ALIKE: Final = 4  # patterns that are tried for a body
_KEPT: Final = 256  # by how many quotation marks patterns are kept, so that a client cannot fill the memory


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Pattern of bodies that differ only in their values."""

    match: Callable[[str], re.Match[str] | None]
    keys: tuple[int, int] | None  # the groups that are PartitionKey and RowKey, if both are
    names: tuple[str, ...]
    conversions: tuple[tuple[int, _Convert], ...]
    # templates with a place for each of the other groups
    content: str
    projection: str
    kind: AccountKind

    def read(self, text: str) -> EncodedProperties | None:
        match = self.match(text)
        if match is None:
            return None
        values = list(match.groups())
        key = None
        if self.keys is not None:
            at, row_at = self.keys
            key = EntityKey(values[at], values[row_at])
            del values[max(at, row_at)], values[min(at, row_at)]
        projected = values.copy()
        try:
            for place, convert in self.conversions:
                converted = convert(values[place])
                if converted is None:
                    return None
                values[place], projected[place] = converted
        except StorageError:
            return None
        fragments = Fragments(self.projection % tuple(projected), self.content % tuple(values))
        return EncodedProperties(self.names, text, fragments, self.kind, key)


_Kept = dict[int, list[_Pattern]]
# by the number of quotation marks in the body, the latest match first
_patterns: Final[Mapping[AccountKind, _Kept]] = {kind: {} for kind in AccountKind}


def recognize(body: bytes, kind: AccountKind) -> EncodedProperties | None:
    """Parse an entity's JSON by the learned patterns; None if no pattern matches, though it may still be valid."""
    alike = _patterns[kind].get(_marks(body))
    if alike is None or len(body) > LONGEST or not body.isascii():
        return None
    text = body.decode("ascii")
    for place, pattern in enumerate(alike):
        recognized = pattern.read(text)
        if recognized is not None:
            if place:
                alike.insert(0, alike.pop(place))
            return recognized
    return None


def _marks(body: bytes) -> int:
    """Count the quotation marks around names and strings, which is equal in entities of the same shape."""
    return body.count(b'"') - (body.count(b'\\"') if b"\\" in body else 0)  # looking for two takes longer


def learn(members: Mapping[str, Any], names: tuple[str, ...], kind: AccountKind) -> None:
    """Learn a pattern from an entity that a plan has encoded, unless the pattern would not match this entity."""
    made = _make(members, names, kind) if len(members) <= _MOST_MEMBERS else None
    text = json.dumps(members)
    if made is None or made.read(text) is None:
        return
    kept = _patterns[kind]
    if len(kept) >= _KEPT:
        kept.clear()
    alike = kept.setdefault(_marks(text.encode()), [])
    alike.insert(0, made)
    del alike[_MOST_ALIKE:]


def _make(members: Mapping[str, Any], names: tuple[str, ...], kind: AccountKind) -> _Pattern | None:
    expressions = []
    usuals: dict[str, _Usual] = {}
    groups = []  # names whose value each group captures
    for name, value in members.items():
        of_key = name.removesuffix(ODATA_TYPE) in KEY_PROPERTIES
        if name in names:
            type_ = members.get(name + ODATA_TYPE)
            usuals[name] = _BY_JSON[type(value)] if type_ is None else _BY_ANNOTATION[kind][type_]
            expression = usuals[name].expression
            groups.append(name)
        elif type(value) is not str or (of_key and name not in KEY_PROPERTIES and value != Edm.STRING):
            return None
        elif name in KEY_PROPERTIES:
            expression = f'"({_PLAIN_TEXT})"'
            groups.append(name)
        elif name.endswith(ODATA_TYPE):
            expression = re.escape(quote_name(value))
        else:
            expression = _PASSED_OVER
        expressions.append(f"{re.escape(quote_name(name))}: ?{expression}")
    present = [name for name in KEY_PROPERTIES if name in groups]
    if len(present) == 1:
        return None
    return _Pattern(
        re.compile(r"\{" + ", ?".join(expressions) + r"\}").fullmatch,
        (groups.index("PartitionKey"), groups.index("RowKey")) if present else None,
        names,
        tuple((at, it.convert) for at, it in enumerate(usuals.values()) if it.convert is not None),
        "".join(
            declared_start(name, members.get(name + ODATA_TYPE)) + usual.value
            for name, usual in usuals.items()
        ),
        "{" + ",".join(f"{quote_name(name)}:{usual.projection}" for name, usual in usuals.items()) + "}",
        kind,
    )
