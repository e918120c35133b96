"""Settings page of a table: notes and facts."""

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from console.site import waiting
from console.site.access import actor_of, table_page, table_required
from console.site.forms import changed_values, report_conflicts
from console.site.refusals import describe_refusal, notify_refusals
from console.site.toasts import notify_success
from console.tables.forms import NotesForm
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.jobs.states import JobStatus
from storage.models import Table
from storage.tables import renaming, table_copies, table_list, tables
from storage.tables.list_columns import COLUMNS, TableRow


@table_page(Capability.READ)
@require_GET
def show(request: HttpRequest, table: Table) -> HttpResponse:
    return _render(request, table, _notes_form(table))


def _notes_form(table: Table, data: QueryDict | None = None) -> NotesForm:
    initial = {"description": table.description, "tags": table.tags, "throughput": table.throughput}
    return NotesForm(data, initial=initial, kind=table.account.kind)


@table_required(Capability.MANAGE_TABLES)
@require_POST
def save_notes(request: HttpRequest, table: Table) -> HttpResponse:
    form = _notes_form(table, request.POST)
    if not form.is_valid() or report_conflicts(form):
        return _render(request, table, form)
    try:
        done = tables.change(table, by=actor_of(request), **changed_values(form))
    except StorageError as error:
        form.add_error(None, describe_refusal(error))
        return _render(request, table, form)
    notify_success(request, _("Saved the notes for %(table)s.") % {"table": table.name}, undo=done)
    return redirect("tables:settings", table.account.name, table.name)


@table_required(Capability.MANAGE_TABLES)
@require_POST
def rename(request: HttpRequest, table: Table) -> HttpResponse:
    former = table.name
    with notify_refusals(request):
        done = renaming.rename(table, request.POST.get("name", "").strip(), by=actor_of(request))
        words = {"from": former, "name": table.name}
        notify_success(request, _("Renamed %(from)s to %(name)s.") % words, undo=done)
    return redirect("tables:settings", table.account.name, table.name)


@table_required(Capability.MANAGE_TABLES)
@require_POST
def copy(request: HttpRequest, table: Table) -> HttpResponse:
    """Copy the table, and show the job if that takes longer."""
    name = request.POST.get("name", "").strip()
    with notify_refusals(request):
        job_request = table_copies.request(table, name)
        job = waiting.complete(request, job_request, entities=table_list.sizes([table])[table.name].entities)
        if job.status != JobStatus.DONE:
            return redirect("jobs:show", job.pk)
        words = {"from": table.name, "name": name}
        notify_success(request, _("Copied %(from)s to %(name)s.") % words, undo=job.activity)
        return redirect("entities:index", table.account.name, name)
    return redirect("tables:settings", table.account.name, table.name)


def _render(request: HttpRequest, table: Table, form: NotesForm) -> HttpResponse:
    context = {
        "table": table,
        "form": form,
        "row": TableRow(table, table_list.sizes([table])[table.name]),
        "columns": COLUMNS,
        "parts": table_list.disk_usage(table),
        "tags": table_list.tags(table.account),
    }
    return render(request, "console/tables/settings.html", context, status=422 if form.errors else 200)
