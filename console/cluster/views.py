"""Actions that distribute a table over cluster nodes or move it back, and their progress."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from console.site.access import actor_of, table_required
from console.site.refusals import describe_refusal, notify_refusals
from console.site.toasts import notify_success
from storage.cluster import distribution_jobs, relations
from storage.domain.access.roles import Capability
from storage.domain.refusals import Refused
from storage.jobs import jobs
from storage.models import Table


def card_values(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template context of the distribution card."""
    table: Table = page["table"]
    job = distribution_jobs.find(table)
    error = None if job is None else jobs.error_of(job)
    return {
        "is_cluster": relations.can_distribute() or table.distributed,
        "moving": job if error is None else None,
        "failure": "" if error is None else describe_refusal(Refused(error)),
    }


@table_required(Capability.READ)
@require_GET
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Render only the card, while rows are moving."""
    context = {"account": table.account, "table": table}
    context |= card_values(context)
    return render(request, "console/cluster/_card.html", context)


@table_required(Capability.OWN)
@require_POST
def start(request: HttpRequest, table: Table) -> HttpResponse:
    is_back = request.POST.get("back") == "1"
    with notify_refusals(request):
        distribution_jobs.ask(table, distributed=not is_back, by=actor_of(request))
        text = _("Bringing %(table)s back.") if is_back else _("Distributing %(table)s.")
        notify_success(request, text % {"table": table.name})
    return redirect("tables:settings", table.account.name, table.name)


@table_required(Capability.OWN)
@require_POST
def dismiss(request: HttpRequest, table: Table) -> HttpResponse:
    """Dismiss a failed distribution."""
    distribution_jobs.dismiss(table)
    return redirect("tables:settings", table.account.name, table.name)
