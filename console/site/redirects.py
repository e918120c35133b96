"""Where a browser goes after a form."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict

from console.site.addresses import split
from console.site.rendering import wants_part


def see_other(address: str) -> HttpResponse:
    """After a form: another page; in a drawer another part."""
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response


def leave_for(request: HttpRequest, address: str) -> HttpResponse:
    """After a form: a page that takes the place of the whole one; of the grid beside a drawer the same state."""
    if wants_part(request):
        shown = split(request.headers.get("HX-Current-URL", ""))
        if shown.path == address:
            query = QueryDict(shown.query, mutable=True)
            query.pop("open", None)
            address = f"{address}?{query.urlencode()}"
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return see_other(address)
