"""Creating the first admin."""

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from console.people import setup
from console.people.forms.setup import SetupForm
from console.people.sign_ins import sign_in
from console.people.views.links import open_link, opened_by
from console.site import appearance
from storage.rest.lookups import or_404


@login_not_required
@never_cache
@sensitive_post_parameters("password", "repeated")
def first_admin(request: HttpRequest) -> HttpResponse:
    """Create the first admin by the printed setup link; raises Http404 afterwards."""
    if not setup.is_open():
        raise Http404
    response = open_link(request, setup.accepts)
    if response is not None:
        return response
    form = SetupForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        return _finish(request, form)
    return render(
        request, "console/people/setup/first_admin.html", {"form": form}, status=422 if form.is_bound else 200
    )


def _finish(request: HttpRequest, form: SetupForm) -> HttpResponse:
    data = form.cleaned_data
    user = or_404(setup.finish(opened_by(request), data["username"], data["password"], data["language"]))
    sign_in(request, user)
    translation.activate(user.language)
    return appearance.remember(redirect("home:index"), language=user.language)
