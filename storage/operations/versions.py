"""The versions of an entity, as far back as its account keeps changes."""

from typing import Final

from storage.domain.entities.entity import EntityKey
from storage.domain.errors import StorageError
from storage.domain.service.versions import VersionPage
from storage.domain.values.names import LONGEST_KEY, check_entity_key
from storage.models import Table
from storage.operations import past
from storage.sql import django as sql
from storage.sql import versions
from storage.sql.history import segment_name
from storage.sql.versions import NEWEST

TOP: Final = 100


def page(table: Table, key: EntityKey, *, first: int | None = None, top: int = TOP) -> VersionPage:
    """Return versions from the newest to the oldest, from the one with the sequence ``first`` on.

    An invalid key has none.
    """
    try:
        check_entity_key(*key, limit=LONGEST_KEY)
    except StorageError:
        return VersionPage([], None)
    segments = [segment_name(table.account_id, it.number) for it in past.kept_segments(table.account_id)]
    if not segments:
        return VersionPage([], None)
    source = past.source_of(table)
    first = NEWEST if first is None else first
    return sql.run_in_lane(versions.page(table.pk, source, segments, key, first, top))
