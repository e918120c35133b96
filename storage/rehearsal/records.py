"""JSON form of exchanges, as rehearsals keep them."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from storage.core.rehearsals import Exchange, ExchangedChange

_DEFAULTS: Final = Exchange()
_FIELDS: Final = frozenset(field.name for field in fields(Exchange))
_CHANGE_FIELDS: Final = frozenset(ExchangedChange._fields)


def dump_exchange(exchange: Exchange) -> str:
    """Serialize an exchange, leaving out defaults; characters that PostgreSQL cannot hold are replaced."""
    written: dict[str, Any] = {
        name: value for name in _FIELDS if (value := getattr(exchange, name)) != getattr(_DEFAULTS, name)
    }
    if exchange.changes:
        written["changes"] = [_dump_change(change) for change in exchange.changes]
    text = json.dumps(written, ensure_ascii=False).encode(errors="replace").decode()
    return text.replace("\\u0000", "\\ufffd")


def _dump_change(change: ExchangedChange) -> dict[str, Any]:
    default = ExchangedChange._field_defaults
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in change._asdict().items()
        if name not in default or value != default[name]
    }


def load_exchange(written: Mapping[str, Any]) -> Exchange:
    """Parse an exchange; members of newer versions are left out."""
    known = written if written.keys() <= _FIELDS else {it: written[it] for it in _FIELDS & written.keys()}
    exchange = Exchange(**known)
    if exchange.changes:
        exchange.changes = [_load_change(it) for it in known["changes"]]
    return exchange


def _load_change(written: Mapping[str, Any]) -> ExchangedChange:
    if written.keys() <= _CHANGE_FIELDS:
        return ExchangedChange(**written)
    return ExchangedChange(**{name: written[name] for name in _CHANGE_FIELDS & written.keys()})
