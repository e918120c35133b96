"""Display and download of a complete stored value."""

from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import content_disposition_header, urlencode
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from console.entities import viewers
from console.entities.entity_page import EntityTarget, find_target
from console.entities.viewers import Viewer
from console.grid.documents import all_values
from console.grid.time_travel import find_past
from console.grid.tokens import encode_key
from console.site.access import AS_OF, table_required
from console.site.responses import render_part
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import typed_text
from storage.entities import entities
from storage.models import Table
from storage.rest.lookups import or_404

LABELS: dict[Viewer, str | Promise] = {
    Viewer.PLAIN: _("Plain"),
    Viewer.JSON: "JSON",
    Viewer.JWT: "JWT",
    Viewer.IMAGE: _("Image"),
    Viewer.GZIP: _("Decompressed"),
    Viewer.BASE64: _("Base64-decoded"),
    Viewer.URL: _("URL-decoded"),
    Viewer.TIME: _("Time"),
    Viewer.HEX: _("Bytes"),
}


@require_safe
@table_required(Capability.READ)
def show(request: HttpRequest, table: Table) -> HttpResponse:
    """Show a value; the address has ``key`` (or ``pk`` and ``rk``), the property, and the viewer ``as``."""
    target = find_target(request, table)
    name = request.GET.get("property", request.GET.get("name", ""))
    try:
        then = find_past(request.GET, table)
    except StorageError:
        raise Http404 from None
    stored = entities.get(target.table, target.key, then)
    value = or_404(None if stored is None else all_values(stored).get(name))
    if "download" in request.GET:
        return _download(value, name)
    return _view(request, target, name, value)


def _view(request: HttpRequest, target: EntityTarget, name: str, value: EdmValue) -> HttpResponse:
    views = viewers.views(value)
    viewer_name = request.GET.get("as", "")
    chosen = next((viewer for viewer in views if viewer == viewer_name), next(iter(views)))
    query = {"key": encode_key(target.key), "property": name}
    if AS_OF in request.GET:
        query[AS_OF] = request.GET[AS_OF]
    context = {
        "table": target.table,
        "key": target.key,
        "property": name,
        "type": value.type,
        "view": views[chosen],
        "viewer": chosen,
        "tabs": [(viewer, LABELS[viewer], urlencode({**query, "as": viewer})) for viewer in views],
        "raw": typed_text.write(value, typed_text.field_form(value)) if value.type is not Edm.BINARY else "",
        "download": urlencode({**query, "download": "1"}),
        "size": _size(value),
        "ago": _ago(views[chosen].moment),
    }
    return render_part(request, "console/entities/value/show.html", "components/viewer.html", context)


def _ago(moment: datetime | None) -> str:
    if moment is None:
        return ""
    if moment <= timezone.now():
        return gettext("%(time)s ago") % {"time": timesince(moment)}
    return gettext("in %(time)s") % {"time": timeuntil(moment)}


def _size(value: EdmValue) -> int | None:
    match value.value:
        case bytes(data):
            return len(data)
        case str(text):
            return len(text.encode(errors="surrogatepass"))
    return None


def _download(value: EdmValue, name: str) -> HttpResponse:
    """Return a download that browsers never render, whatever its content."""
    match value.value:
        case bytes(data):
            suffix = ".bin"
        case _:
            data, suffix = typed_text.write(value).encode(errors="surrogatepass"), ".txt"
    response = HttpResponse(data, content_type="application/octet-stream")
    response["X-Content-Type-Options"] = "nosniff"
    # a property's name may contain letters beyond ASCII
    response.headers["Content-Disposition"] = str(content_disposition_header(True, f"{name}{suffix}"))
    return response
