"""Plans: conversion of an entity's JSON members to its row in one pass."""

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from storage.domain.entities import patterns
from storage.domain.entities.annotations import ODATA_TYPE, annotation_name
from storage.domain.entities.entity import (
    PROPERTY_LIMIT,
    SYSTEM_PROPERTIES,
    EncodedProperties,
    Fragments,
    declared_start,
    quote_name,
)
from storage.domain.errors import StorageError
from storage.domain.values.edm import BINARY_LIMIT, GUID, INT32, STRING_LIMIT, Edm, quote
from storage.domain.values.encoding import ENCODE
from storage.domain.values.kinds import AccountKind

# a value as JSON text, and as a member of the projection; None for an unusual one
_Texts = tuple[str, str] | None
_Encode = Callable[[Any], _Texts]

_INTEGER: Final = re.compile(r"-?[1-9][0-9]{0,17}|0").fullmatch  # surely an Int64, in its only form
_DATETIME: Final = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,7})?Z", re.ASCII
).fullmatch


def _encode_string(json: Any) -> _Texts:
    # an astral character is two UTF-16 units, and an escape may be written differently in the projection
    if type(json) is not str or len(json) > STRING_LIMIT // 2:
        return None
    text = quote(json)
    return None if "\\u" in text else (text, '"s' + text[1:])


def _encode_boolean(json: Any) -> _Texts:
    return ENCODE[Edm.BOOLEAN](json) if type(json) is bool else None


def _encode_int32(json: Any) -> _Texts:
    return ENCODE[Edm.INT32](json) if type(json) is int and json in INT32 else None


def _encode_int64(json: Any) -> _Texts:
    text = json if type(json) is str else str(json) if type(json) is int else ""
    return ENCODE[Edm.INT64](text) if _INTEGER(text) else None


def _encode_double(json: Any) -> _Texts:
    if type(json) is not float or not json:
        return None
    text = repr(json)
    return None if "e" in text or "n" in text else (text, text)


def _encode_datetime(json: Any) -> _Texts:
    return _quoted(patterns.convert_datetime(json)) if type(json) is str and _DATETIME(json) else None


def _encode_cosmos_datetime(json: Any) -> _Texts:
    return _quoted(patterns.convert_cosmos_datetime(json)) if type(json) is str and _DATETIME(json) else None


def _quoted(texts: _Texts) -> _Texts:
    """Quote the texts of a DateTime as JSON strings."""
    return None if texts is None else (f'"{texts[0]}"', f'"t{texts[1]}"')


def _encode_guid(json: Any) -> _Texts:
    text = json.lower() if type(json) is str else ""
    return ENCODE[Edm.GUID](text) if GUID.fullmatch(text) else None


def _encode_binary(json: Any) -> _Texts:
    if type(json) is not str or not json:
        return None
    try:
        value = a2b_base64(json, strict_mode=True)
    except (Base64Error, ValueError):
        return None
    return ENCODE[Edm.BINARY](value) if len(value) <= BINARY_LIMIT else None


_STORAGE: Final[Mapping[str, _Encode]] = {
    Edm.STRING: _encode_string,
    Edm.BOOLEAN: _encode_boolean,
    Edm.INT32: _encode_int32,
    Edm.INT64: _encode_int64,
    Edm.DOUBLE: _encode_double,
    Edm.DATETIME: _encode_datetime,
    Edm.GUID: _encode_guid,
    Edm.BINARY: _encode_binary,
}
_BY_ANNOTATION: Final[Mapping[AccountKind, Mapping[str, _Encode]]] = {
    AccountKind.STORAGE: _STORAGE,
    AccountKind.COSMOS: {**_STORAGE, Edm.DATETIME: _encode_cosmos_datetime},
}
_BY_JSON: Final[Mapping[type, _Encode]] = {
    str: _encode_string,
    bool: _encode_boolean,
    int: _encode_int32,
    float: _encode_double,
}


@dataclass(slots=True)
class _Plan:
    """Conversion plan for one shape of entities; an encoder is None if the JSON value decides its type.

    The templates take one text per name. After so many ``uses`` it becomes a pattern, and after many more
    another one, if its values are of other types.
    """

    names: tuple[str, ...]
    encoders: tuple[tuple[str, _Encode | None], ...]
    content: str
    projection: str
    uses: int = 0
    next_pattern: int = 0


# A pattern takes as long to make as 500 uses of a plan save: it comes after ten uses for each member
_USES_PER_MEMBER: Final = 10
# plans and sets of names that are kept, and characters of the names, so that a client cannot fill the memory
KEPT: Final = 1024
_LONGEST: Final = 32_768

# the names of the annotations among the members, by the names of all members
_annotations: dict[tuple[str, ...], tuple[str, ...]] = {}
_Shape = tuple[tuple[str, ...], tuple[object, ...], AccountKind]
_plans: dict[_Shape, _Plan] = {}


def encode(members: Mapping[str, Any], kind: AccountKind = AccountKind.STORAGE) -> EncodedProperties | None:
    """Encode the properties in a JSON object by their plan; None if the plan does not fit."""
    if None in members.values():
        return None  # null is as good as absent
    all_names = tuple(members)
    types = _annotations.get(all_names)
    if types is None:
        if sum(map(len, all_names)) > _LONGEST:
            return None
        if len(_annotations) >= KEPT:
            _annotations.clear()
        types = _annotations[all_names] = tuple(name for name in all_names if name.endswith(ODATA_TYPE))
    shape = (all_names, tuple([members[name] for name in types]), kind)
    try:
        plan = _plans.get(shape) or _remember(shape, members)
    except TypeError:  # an annotation that is not a string
        return None
    if plan is None:
        return None
    values, projected = [], []
    try:
        for name, encode_value in plan.encoders:
            json = members[name]
            texts = encode_value(json) if encode_value is not None else _BY_JSON[type(json)](json)
            if texts is None:
                return None
            values.append(texts[0])
            projected.append(texts[1])
    except (KeyError, StorageError):
        return None
    plan.uses += 1
    if plan.uses >= plan.next_pattern:
        plan.next_pattern = 4 * plan.uses
        patterns.learn(members, plan.names, kind)
    fragments = Fragments(plan.projection % tuple(projected), plan.content % tuple(values))
    return EncodedProperties(plan.names, members, fragments, kind)


def _remember(shape: _Shape, members: Mapping[str, Any]) -> _Plan | None:
    plan = _make(members, shape[2])
    if plan is None:  # the types in its shape may be texts of any length
        return None
    if len(_plans) >= KEPT:
        _plans.clear()
    _plans[shape] = plan
    return plan


def _make(members: Mapping[str, Any], kind: AccountKind) -> _Plan | None:
    by_annotation = _BY_ANNOTATION[kind]
    encoders: list[tuple[str, _Encode | None]] = []
    starts = []
    for name in members:
        if name in SYSTEM_PROPERTIES:
            continue
        try:
            type_name = annotation_name(name)
        except StorageError:
            return None
        if type_name is None:
            continue
        type_ = members.get(type_name)
        if type_ is not None and type_ not in by_annotation:
            return None
        encoders.append((name, None if type_ is None else by_annotation[type_]))
        starts.append(declared_start(name, type_))
    if len(encoders) > PROPERTY_LIMIT:
        return None
    names = tuple(name for name, _ in encoders)
    return _Plan(
        names,
        tuple(encoders),
        "".join(f"{start}%s" for start in starts),
        "{" + ",".join(f"{quote_name(name)}:%s" for name in names) + "}",
        next_pattern=_USES_PER_MEMBER * len(members),
    )
