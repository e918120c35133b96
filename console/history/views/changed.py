"""Changes of an entity since an editor opened it, with author, properties and a way to adopt them."""

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.entities import entity_page as pages
from console.entities.entity_page import EntityTarget
from console.grid.differences import compare_entities
from console.history.entity_versions import VersionLine, changed_names
from console.site.access import table_required
from console.site.responses import wants_part
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import StoredEntity
from storage.domain.errors import StorageError
from storage.domain.history.recorded import RecordedChange
from storage.domain.values.etag import read_if_match
from storage.entities import entities
from storage.history import versions
from storage.models import Table

_MOST_SHOWN: Final = 8  # properties
_MOST_WHO: Final = 3  # people and programs


@require_safe
@table_required(Capability.READ)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Compare an entity with the version of an ETag; responds 204 if it is current or unknown."""
    target = pages.find_target(request, table)
    opened = _read_etag(request.GET.get("etag", ""))
    now = entities.get(table, target.key)
    if opened is None or (now is not None and now.timestamp == opened):
        return HttpResponse(status=204)
    context = _describe(target, opened, now) | {"in_drawer": wants_part(request)}
    return render(request, "console/history/_changed.html", context)


def _read_etag(text: str) -> int | None:
    try:
        return read_if_match(text).expected
    except StorageError:
        return None


def _describe(target: EntityTarget, opened: int, now: StoredEntity | None) -> dict[str, Any]:
    since = [it for it in versions.page(target.table, target.key).entries if it.ticks > opened]
    lines = [VersionLine(it, changed_names(it)) for it in since]
    before = _as_opened(since, target, opened)
    differences = compare_entities(target.key, before, now).differences if before and now else []
    return {
        "address": target.address(),
        "is_deleted": now is None,
        "who": list(dict.fromkeys(line.who for line in lines))[:_MOST_WHO],
        "at": lines[0].at if lines else None,
        "differences": differences[:_MOST_SHOWN],
        "more": max(0, len(differences) - _MOST_SHOWN),
        "history_address": target.address("history:entity"),
    }


def _as_opened(since: Sequence[RecordedChange], target: EntityTarget, opened: int) -> StoredEntity | None:
    """Return the entity as it was opened, from the first change after that; None if the history has a gap."""
    before = since[-1].before if since else None
    return before if before is not None and before.timestamp == opened else None
