"""Adding and dropping of property indexes."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from console.site.access import actor_of, table_required
from console.site.addresses import is_console_path
from console.site.refusals import notify_refusals
from console.site.toasts import notify_success
from storage.domain.access.roles import Capability
from storage.models import Table
from storage.tables import indexes
from storage.tables.index_rules import IndexOrigin
from storage.tables.subject import TableVerb


@table_required(Capability.READ)
@require_GET
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Render the index part of the schema page, while an index is built or dropped."""
    name = request.GET.get("property", "")
    by_name = {details.index.name: details for details in indexes.describe(table)}
    context = {"account": table.account, "table": table, "name": name, "details": by_name.get(name)}
    return render(request, "console/tables/_index.html", context)


@table_required(Capability.MANAGE_TABLES)
@require_POST
def add(request: HttpRequest, table: Table) -> HttpResponse:
    """Add an index from the schema page or, with a ``query``, from its explanation."""
    name, query = request.POST.get("property", ""), request.POST.get("query")
    origin = IndexOrigin.HAND if query is None else IndexOrigin.ADVICE
    words = {"property": name, "table": table.name}
    with notify_refusals(request):
        done = indexes.add(table, name, by=actor_of(request), origin=origin)
        is_kept = done.verb == TableVerb.INDEX_KEEP
        text = (
            _("Keeping the index on %(property)s.") if is_kept else _("Indexing %(property)s of %(table)s.")
        )
        notify_success(request, text % words, undo=done)
    if is_console_path(back := request.POST.get("next", "")):
        return redirect(back)
    if query is None:
        return redirect("tables:schema", table.account.name, table.name)
    return redirect(reverse("entities:index", args=(table.account.name, table.name)) + f"?{query}")


@table_required(Capability.MANAGE_TABLES)
@require_POST
def drop(request: HttpRequest, table: Table) -> HttpResponse:
    name = request.POST.get("property", "")
    words = {"property": name, "table": table.name}
    with notify_refusals(request):
        done = indexes.drop(table, name, by=actor_of(request))
        notify_success(request, _("Dropped the index on %(property)s.") % words, undo=done)
    return redirect("tables:schema", table.account.name, table.name)
