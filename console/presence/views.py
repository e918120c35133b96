"""View by which a tab reports the entity that it shows."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from console.presence.streaming import read_entity, read_tab
from console.site.access import table_required, user_of
from storage.domain.access.roles import Capability
from storage.models import Table
from storage.presence import presence


@require_POST
@table_required(Capability.READ)
def move(request: HttpRequest, table: Table) -> HttpResponse:
    """Store the entity that a tab shows, ignoring tabs without a stream."""
    tab, entity = read_tab(request.POST.get("tab", "")), read_entity(request.POST.get("entity", ""))
    if tab is not None:
        presence.move(user_of(request), tab, table.pk, entity)
    return HttpResponse(status=204)
