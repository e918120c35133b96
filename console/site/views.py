"""Theme, density and language of this browser, changed from any page."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console.models import User
from console.site import appearance
from console.site.addresses import is_console_path


@login_not_required
@require_POST
def change(request: HttpRequest) -> HttpResponse:
    target = request.POST.get("next", "")
    chosen = {name: request.POST.get(name, "") for name in ("language", "theme", "density")}
    if isinstance(request.user, User):
        request.user.remember(**chosen)
    return appearance.remember(redirect(target if is_console_path(target) else "home:index"), **chosen)
