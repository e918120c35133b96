"""Export of several tables as one file."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console.grid.views.exports import escapes_formulas
from console.site.access import account_required, actor_of
from console.site.downloads import stream_bytes
from console.site.refusals import notify_refusals
from console.tables.list_query import read_list_query, selected_names
from storage.domain.access.roles import Capability
from storage.models import Account
from storage.tables import tables
from storage.tabular.writing import ExportFormat
from storage.transfer import export_jobs
from storage.transfer.exports import Export, write_zip


@account_required(Capability.READ)
@require_POST
def export(request: HttpRequest, account: Account) -> HttpResponseBase:
    """Send a ZIP archive with a typed CSV file per table."""
    with notify_refusals(request):  # the table may have been deleted meanwhile
        chosen = [tables.get(account, name) for name in selected_names(request.POST)]
        escapes = escapes_formulas(request.POST, ExportFormat.TYPED_CSV)
        by, format_ = actor_of(request), ExportFormat.TYPED_CSV
        if "job" in request.POST:
            job = export_jobs.start_zip(account, chosen, format_, by=by, escapes_formulas=escapes)
            return redirect("jobs:show", job.pk)
        pieces = write_zip([Export(table, format_, by, escapes_formulas=escapes) for table in chosen])
        return stream_bytes(request, pieces, content_type="application/zip", filename=f"{account.name}.zip")
    return redirect(read_list_query(request.POST).address(account))
