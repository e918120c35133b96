"""Serialization of JSON values to TOML, which tomllib lacks."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def write_toml(content: Mapping[str, Any]) -> str:
    """Serialize tables, lists, strings, numbers and Booleans to TOML; null values are left out."""
    return "\n".join(_lines(content, ())).strip() + "\n"


def _lines(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {name: value for name, value in content.items() if value is not None}
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    if path and (len(tables) < len(values) or not values):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for name, value in values.items():
        if name not in tables:
            yield f"{_key(name)} = {_value(value)}"
    for name, table in tables.items():
        yield from _lines(table, (*path, name))


def _value(value: Any) -> str:
    match value:
        case str():
            return _text(value)
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            return f"{{ {', '.join(f'{_key(name)} = {_value(it)}' for name, it in value.items())} }}"
    return str(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # the escapes of JSON are among those of TOML, which allows no delete character
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
