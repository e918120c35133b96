"""History page of an entity: its versions, the changes of each, and their restoration."""

from collections.abc import Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from console.entities import entity_page as pages
from console.entities import problems, saving
from console.entities.entity_page import EntityTarget
from console.entities.saving import Refusal
from console.history import entity_versions
from console.history.entity_versions import VersionLine
from console.site import layout
from console.site.access import account_context, table_required
from console.site.responses import render_part, see_other
from console.site.toasts import notify_error, notify_success
from storage.domain.access.roles import Capability
from storage.domain.entities.changes import Insert, Update
from storage.domain.entities.entity import Entity, StoredEntity
from storage.domain.history.recorded import ChangePage, RecordedChange
from storage.domain.values.etag import Precondition, write_etag
from storage.domain.values.numbers import read_number
from storage.entities import entities
from storage.history import past, versions
from storage.models import Table
from storage.rest.lookups import or_404

ADDRESS: Final = "history:entity"


@require_http_methods(["GET", "HEAD", "POST"])
def history(request: HttpRequest, **names: Any) -> HttpResponseBase:
    view = restore if request.method == "POST" else show
    return view(request, **names)


@table_required(Capability.READ)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the versions of an entity; ``v`` is the sequence of the selected one, ``from`` the start of the list."""
    target = pages.find_target(request, table)
    start, number = read_number(request.GET.get("from", "")), read_number(request.GET.get("v", ""))
    page = versions.page(table, target.key, first=start)
    selected = _find(page, number)
    if selected is None and number is not None:
        page = versions.page(table, target.key, first=number)
        selected = or_404(_find(page, number))
    is_deleted = table.deleted_at is not None
    now = None if is_deleted else entities.get(table, target.key)
    only = request.GET.get("property", "")
    fields = {"property": only} if only else {}
    days = list(entity_versions.days(page.entries, only))
    if selected is None and days:
        selected = days[0].rows[0].version
    context = {
        "table": table,
        "entity_key": target.key,
        "exists": now is not None,
        "now_etag": write_etag(now.timestamp) if now is not None else "",
        "tabs": _tabs(target, exists=now is not None),
        "days": days,
        "address": target.address(ADDRESS),
        "as_of": target.as_of,
        "base": target.address(ADDRESS, **fields, **({} if start is None else {"from": str(start)})),
        "older": target.address(ADDRESS, **fields, **{"from": str(page.next)}) if page.next else "",
        "newest": target.address(ADDRESS, **fields) if start is not None else "",
        "kept_since": past.kept_since(table.account),
        "names": entity_versions.property_names(page.entries),
        "only": only,
        "table_address": target.table_address,
    }
    if selected is not None:
        context |= _details(selected, now)
    if is_deleted:
        current = account_context(request)
        assert current is not None
        context["may"] = layout.allowed(current, read_only=True)
    return render_part(request, "console/history/entity.html", "_drawer.html", context)


def _details(version: RecordedChange, now: StoredEntity | None) -> dict[str, Any]:
    restores = entity_versions.property_restores(version, now)
    return {
        "selected": VersionLine(version, entity_versions.changed_names(version)),
        "changes": entity_versions.property_changes(version, now),
        "unchanged": entity_versions.unchanged(version),
        "restores": restores,
        "is_whole": now is None and version.before is not None,
        "etag": _etag(now),
    }


def _tabs(target: EntityTarget, *, exists: bool) -> list[tuple[str, str, bool]]:
    """Return the tabs of the entity; only the history for a missing one."""
    return [tab for tab in pages.tab_links(target, "history") if exists or tab[2]]


def _find(page: ChangePage[RecordedChange], sequence: int | None) -> RecordedChange | None:
    return next((it for it in page.entries if it.sequence == sequence), None)


# restoring


@table_required(Capability.WRITE)
def restore(request: HttpRequest, table: Table) -> HttpResponse:
    """Restore properties to before a version, unless the entity was changed since the page was shown."""
    if table.deleted_at is not None:
        raise Http404
    target = pages.find_target(request, table)
    sequence = read_number(request.POST.get("v", ""))
    version = _find(versions.page(table, target.key, first=sequence, top=1), sequence)
    if version is None or version.before is None:
        raise Http404
    now = entities.get(table, target.key)
    names = _chosen(version, now, request.POST.getlist("name"))
    entity = Entity(target.key, entity_versions.restored(version, now, names))
    if _etag(now) != request.POST.get("etag", ""):
        error = _changed_meanwhile()
    elif now is not None and not names:
        error = _("Select the properties to restore.")
    elif problem := problems.check_limits(target.kind, entity):
        error = problem.text
    else:
        error = _restore(request, target, entity, now, len(names))
    if error:
        notify_error(request, error)
        return see_other(target.address(ADDRESS, v=str(version.sequence)))
    return see_other(target.address() if request.POST.get("to") == "entity" else target.address(ADDRESS))


def _chosen(version: RecordedChange, now: StoredEntity | None, names: Sequence[str]) -> list[str]:
    """Return the properties to restore; all for a deleted entity."""
    offered = [it.name for it in entity_versions.property_restores(version, now)]
    return [name for name in offered if now is None or name in names]


def _etag(now: StoredEntity | None) -> str:
    return "" if now is None else str(now.timestamp)


def _restore(
    request: HttpRequest, target: EntityTarget, entity: Entity, now: StoredEntity | None, count: int
) -> str:
    """Write a restored entity; return the error, or an empty string."""
    change = Insert(entity) if now is None else Update(entity, Precondition(now.timestamp), merge=False)
    done = saving.save(request, target.table, [change])
    if isinstance(done, Refusal):
        return _changed_meanwhile() if done.is_conflict else problems.describe_error(done.error, entity).text
    text = (
        _("Restored the entity")
        if now is None
        else ngettext("Restored %(count)s property", "Restored %(count)s properties", count)
        % {"count": count}
    )
    notify_success(request, text, undo=done.activity)
    return ""


def _changed_meanwhile() -> str:
    return _("This entity was changed since you opened the page. Review the latest version, then try again.")
