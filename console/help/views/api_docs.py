"""The reference of the management API."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.help import api_reference
from storage.rest import problems


@login_required
@require_safe
def show(request: HttpRequest) -> HttpResponse:
    context = {
        "groups": api_reference.groups(),
        "kinds": problems.PROBLEM_TYPES,
        "where": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "console/help/api_docs/show.html", context)
