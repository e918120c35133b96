"""Accepting an invitation."""

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from console.models import Invitation
from console.people import invitations, providers
from console.people.forms.people import JoinForm
from console.people.invitations import NoLongerOpen
from console.people.sign_ins import sign_in
from console.people.views.links import open_link, opened_by
from console.site import appearance
from console.site.access import actor_named, actor_of, user_of
from storage.rest.lookups import or_404


@login_not_required
@never_cache
@sensitive_post_parameters("password", "repeated")
def join(request: HttpRequest) -> HttpResponse:
    """Join as the signed-in user, or create a user first."""
    response = open_link(request, lambda token_hash: invitations.find(token_hash) is not None)
    if response is not None:
        return response
    invitation = or_404(invitations.find(opened_by(request)))  # none if it was withdrawn meanwhile
    try:
        if request.user.is_authenticated:
            return _join(request, invitation)
        return _accept(request, invitation)
    except NoLongerOpen:
        raise Http404 from None


def _join(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    if request.method != "POST":
        return render(request, "console/people/invitations/join.html", {"invitation": invitation})
    invitations.join(invitation, user_of(request), by=actor_of(request))
    return _redirect_to_account(invitation)


def _accept(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    form = JoinForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        context = {"invitation": invitation, "form": form, "providers": providers.offered()}
        return render(request, "console/people/invitations/join.html", context, status=status)
    data = form.cleaned_data
    by = actor_named(request, data["username"])
    user = invitations.accept(invitation, data["username"], data["password"], data["language"], by=by)
    sign_in(request, user)
    translation.activate(user.language)
    return appearance.remember(_redirect_to_account(invitation), language=user.language)


def _redirect_to_account(invitation: Invitation) -> HttpResponse:
    if invitation.account is None:
        return redirect("home:index")
    return redirect("tables:index", invitation.account.name)
