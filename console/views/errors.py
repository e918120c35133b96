"""The pages of what went wrong."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Says which role would do, when that is the reason."""
    return render(request, "403.html", {"reason": str(exception)}, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "404.html", status=404)


@login_not_required
def failed(request: HttpRequest) -> HttpResponse:
    return render(request, "500.html", status=500)


@login_not_required
def too_many(request: HttpRequest) -> HttpResponse:
    return render(request, "429.html", status=429)


@login_not_required
def untrusted(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that did not come from a page of ours, or from one that is too old."""
    return render(request, "403_csrf.html", status=403)
