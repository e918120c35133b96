"""Staged cells of a page: read, compared with the stored entities, and turned into changes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from console.entities import problems
from console.entities.value_field import TypedInput, ValueField, read_form, read_type
from console.grid import tokens
from console.models import EditMode
from console.site.access import user_of
from storage.domain.entities.changes import Change, Update
from storage.domain.entities.entity import SYSTEM_PROPERTIES, Entity, EntityKey, StoredEntity, read_stored
from storage.domain.errors import StorageError
from storage.domain.values.edm import EdmValue
from storage.domain.values.etag import ANY, read_if_match, write_etag
from storage.domain.values.names import check_property_name
from storage.models import Account, Table
from storage.operations.entities import entities

LIMIT: Final = 1_000  # cells


def is_staging(request: HttpRequest, account: Account) -> bool:
    """Whether changed cells are collected: the user chose so, or the account is protected."""
    return account.protected or user_of(request).edit_mode == EditMode.STAGED


class Unreadable(Exception):
    """The input does not come from our pages."""


@dataclass(frozen=True, slots=True)
class StagedChange:
    """``value`` None removes the property."""

    key: EntityKey
    name: str
    etag: str
    value: EdmValue | None


@dataclass(frozen=True, slots=True)
class StagedRow:
    """A staged cell and the stored value; ``etag`` is the stored one, ``error`` why it cannot be saved."""

    staged: StagedChange
    token: str
    now: EdmValue | None
    etag: str
    error: str

    @property
    def is_stale(self) -> bool:
        return bool(self.etag) and self.etag != self.staged.etag


def read(text: str, now: datetime) -> list[StagedChange]:
    try:
        found = json.loads(text)
        if not isinstance(found, list) or len(found) > LIMIT:
            raise Unreadable
        return [_read_one(one, now) for one in found]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ValidationError, StorageError):
        raise Unreadable from None


def _read_one(found: Mapping[str, str], now: datetime) -> StagedChange:
    key, name = tokens.decode_key(found["key"]), found["property"]
    check_property_name(name)
    if key is None or name in SYSTEM_PROPERTIES or read_if_match(found["etag"]) == ANY:
        raise Unreadable
    type_ = read_type(found["type"])
    typed = TypedInput(type_, read_form(type_, found["form"]), found["text"])
    value = None if found.get("removed") else ValueField(now).clean(typed)
    return StagedChange(key, name, found["etag"], value)


def lines(table: Table, staged: Sequence[StagedChange], errors: Mapping[EntityKey, str]) -> list[StagedRow]:
    there = _there(table, staged)
    return [
        _line(one, stored, errors.get(one.key, ""))
        if (stored := there.get(one.key)) is not None
        else _deleted_line(table, one)
        for one in staged
    ]


def _there(table: Table, staged: Sequence[StagedChange]) -> dict[EntityKey, StoredEntity]:
    return {stored.key: stored for stored in entities.get_many(table, {one.key for one in staged})}


def _deleted_line(table: Table, staged: StagedChange) -> StagedRow:
    error = problems.describe_deletion(table, staged.key)
    return StagedRow(staged, tokens.encode_key(staged.key), None, "", error)


def _line(staged: StagedChange, stored: StoredEntity, error: str) -> StagedRow:
    token = tokens.encode_key(staged.key)
    etag = write_etag(stored.timestamp)
    if etag != staged.etag:
        error = _("This entity was changed while you were editing.")
    return StagedRow(staged, token, read_stored(stored).properties.get(staged.name), etag, error)


def changes(table: Table, staged: Sequence[StagedChange]) -> list[Change]:
    """One change per entity, in the order of the first edits and with their conditions."""
    there = _there(table, staged)
    found: dict[EntityKey, list[StagedChange]] = {}
    for one in staged:
        found.setdefault(one.key, []).append(one)
    return [_change(key, those, there.get(key)) for key, those in found.items()]


def _change(key: EntityKey, staged: Sequence[StagedChange], stored: StoredEntity | None) -> Change:
    condition = read_if_match(staged[0].etag)
    values = {one.name: one.value for one in staged if one.value is not None}
    removed = {one.name for one in staged if one.value is None}
    if not removed or stored is None:
        return Update(Entity(key, values), condition, merge=True)
    rest = {name: value for name, value in read_stored(stored).properties.items() if name not in removed}
    return Update(Entity(key, {**rest, **values}), condition, merge=False)
