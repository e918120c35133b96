"""Pages for API tokens."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from console.models import User
from console.people.api_tokens import TokenForm, token_rows
from console.people.reauthentication import recently_authenticated
from console.site.access import actor_of, admin_required, user_of
from console.site.refusals import describe_refusal
from console.site.toasts import notify_success
from storage.models import ApiToken
from storage.people import api_tokens
from storage.people.api_tokens import TokenError


@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    return render(request, "console/people/api_tokens/index.html", {"tokens": token_rows(user_of(request))})


@never_cache
@recently_authenticated
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Create a token; its secret is only shown in this response."""
    user = user_of(request)
    form = TokenForm(request.POST if request.method == "POST" else None, user=user)
    if request.method == "POST" and form.is_valid():
        try:
            secret, token = api_tokens.issue(user, form.wanted(timezone.now()), by=actor_of(request))
        except TokenError as error:
            form.add_error(None, describe_refusal(error))
        else:
            context = {"secret": secret, "token": token, "where": request.build_absolute_uri("/ui/api/v1/")}
            return render(request, "console/people/api_tokens/made.html", context)
    status = 422 if form.errors else 200
    context = {"form": form, "quota": api_tokens.allowance(user)}
    return render(request, "console/people/api_tokens/new.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, token: int) -> HttpResponse:
    api_token = get_object_or_404(api_tokens.for_user(user_of(request)), pk=token)
    if request.method == "POST":
        _revoke(request, api_token)
        return redirect("people:api_tokens")
    return render(
        request, "console/people/api_tokens/revoke.html", {"token": api_token, "back": "people:api_tokens"}
    )


@admin_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke_for_user(request: HttpRequest, user: int, token: int) -> HttpResponse:
    """Revoke the token of another user, as an admin."""
    person = get_object_or_404(User, pk=user)
    api_token = get_object_or_404(api_tokens.for_user(person), pk=token)
    if request.method == "POST":
        _revoke(request, api_token)
        return redirect("people:user", person.pk)
    return render(request, "console/people/api_tokens/revoke.html", {"token": api_token, "person": person})


def _revoke(request: HttpRequest, token: ApiToken) -> None:
    api_tokens.revoke(token, by=actor_of(request))
    notify_success(request, _("Revoked token %(name)s.") % {"name": token.name})
