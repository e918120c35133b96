"""Versions of an entity, as far back as its account keeps changes."""

from collections.abc import Collection
from typing import Final

from storage.activity.actors import label_actors, name_actors, read_actor
from storage.domain.access.actor import ActorKind
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import StorageError
from storage.domain.history.recorded import ChangePage, RecordedChange
from storage.domain.values import dialects
from storage.domain.values.names import check_entity_key
from storage.history import past
from storage.models import HistoryActor, Table
from storage.relations.record import kept_history
from storage.sql import django as sql
from storage.sql import versions
from storage.sql.changes import latest
from storage.sql.comparing import NO_TABLE
from storage.sql.forms import history_of
from storage.sql.relations import relation_of
from storage.sql.versions import NEWEST, RawVersion

TOP: Final = 100


def is_entity_key(key: EntityKey) -> bool:
    """Return whether an entity can have the key."""
    try:
        check_entity_key(*key, dialects.WIDEST)
    except StorageError:
        return False
    return True


def page(
    table: Table, key: EntityKey, *, first: int | None = None, top: int = TOP
) -> ChangePage[RecordedChange]:
    """Return versions, newest first, starting at the sequence ``first``."""
    kept = kept_history(table.account_id).after()
    if not (kept and is_entity_key(key)):
        return ChangePage([], None)
    source = past.source_of(table)
    first = NEWEST if first is None else first
    rows: list[RawVersion] = []
    if not table.form.capabilities.records_in_account:
        rows = _beside(table, source, key, first, top)
        # before it had that form, its changes were recorded together with other tables' changes
        source = NO_TABLE
    if sum(row.op is not None and row.sequence <= first for row in rows) <= top:
        rows += sql.run_in_lane(versions.page(table.pk, source, kept, key, first, top))
    change_page = versions.read_page(rows, (table.name, table.pk), key, first, top)
    actors = label_actors(table.account_id, (it.actor for it in change_page.entries))
    named = [it._replace(actor=actor) for it, actor in zip(change_page.entries, actors, strict=True)]
    return ChangePage(named, change_page.next)


def newest(table: Table, key: EntityKey) -> RecordedChange | None:
    """Return the latest recorded change of an entity."""
    return next(iter(page(table, key, top=1).entries), None)


def newest_of(
    account_id: int, keys: Collection[tuple[int, EntityKey]]
) -> dict[tuple[int, EntityKey], RecordedChange]:
    """Return the latest recorded change of each entity, given by table id and key."""
    kept = kept_history(account_id).after()
    if not (keys and kept):
        return {}
    tables = Table.objects.in_bulk({it for it, _ in keys})
    apart = {pk: it for pk, it in tables.items() if not it.form.capabilities.records_in_account}
    recorded = [it for it in keys if it[0] not in apart]
    names = {pk: it.name for pk, it in tables.items()}
    changes = name_actors(account_id, sql.run_in_lane(latest(kept, names, recorded))) if recorded else []
    changes += filter(None, (newest(apart[table], key) for table, key in keys if table in apart))
    return {(it.table_id, it.key): it for it in changes}


def _beside(table: Table, source: str, key: EntityKey, first: int, top: int) -> list[RawVersion]:
    history = history_of(relation_of(table))
    rows = sql.walk(versions.beside(source, history, key, first, top), sql.run_in_lane)
    actors = HistoryActor.objects.in_bulk({row.actor for row in rows})
    nobody = HistoryActor(kind=ActorKind.SERVER)
    return [row._replace(actor=read_actor(actors.get(row.actor, nobody), row.request)) for row in rows]
