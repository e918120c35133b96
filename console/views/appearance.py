"""Theme, density and language of this browser, changed from any page."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from console import appearance


@login_not_required
@require_POST
def change(request: HttpRequest) -> HttpResponse:
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, None, require_https=request.is_secure()):
        target = reverse("home")
    return appearance.remember(
        redirect(target),
        language=request.POST.get("language", ""),
        theme=request.POST.get("theme", ""),
        density=request.POST.get("density", ""),
    )
