"""JSON form of exchanges, as rehearsals keep them."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from storage.core.rehearsals import Exchange, ExchangedChange

_DEFAULTS: Final = Exchange()
_FIELDS: Final = frozenset(field.name for field in fields(Exchange))


def dump_exchange(exchange: Exchange) -> str:
    """Serialize an exchange, leaving out what is as by default; U+0000, which PostgreSQL cannot hold, is replaced."""
    written: dict[str, Any] = {
        name: value for name in _FIELDS if (value := getattr(exchange, name)) != getattr(_DEFAULTS, name)
    }
    if exchange.changes:
        written["changes"] = [_dump_change(change) for change in exchange.changes]
    return json.dumps(written).replace("\\u0000", "\\ufffd")


def _dump_change(change: ExchangedChange) -> dict[str, Any]:
    default = ExchangedChange._field_defaults
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in change._asdict().items()
        if name not in default or value != default[name]
    }


def load_exchange(written: Mapping[str, Any]) -> Exchange:
    """Parse an exchange; members of newer versions are left out."""
    known = {name: value for name, value in written.items() if name in _FIELDS}
    known["changes"] = [
        ExchangedChange(**{name: it[name] for name in ExchangedChange._fields if name in it})
        for it in written.get("changes", ())
    ]
    return Exchange(**known)
