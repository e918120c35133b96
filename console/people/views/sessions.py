"""Signing in and out, on top of allauth's views."""

import json
from typing import Any, Final

from allauth.account import views
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.views import LoginWebAuthnView
from django.contrib.auth.decorators import login_not_required, login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from console.people import mfa, providers, setup
from console.people.forms import passkeys
from console.people.forms.sessions import CodeForm
from console.site.allauth_parts import ratelimit
from console.site.toasts import notify_error

PASSKEY_TIMEOUT: Final = 600  # seconds to answer a passkey challenge


class SignIn(views.LoginView):  # type: ignore[misc]
    template_name = "console/people/sessions/sign_in.html"

    def form_invalid(self, form: Any) -> HttpResponse:
        return _render_invalid(self, form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {
            **super().get_context_data(**kwargs),
            "is_new": setup.is_open(),
            "can_use_passkeys": mfa.can_use_passkeys(self.request),
            "providers": providers.offered(),
        }


class SecondFactor(AuthenticateView):  # type: ignore[misc]
    """View of the second factor after the password: passkey, app code or recovery code."""

    template_name = "console/people/sessions/second_factor.html"
    form_class = CodeForm
    webauthn_form_class = passkeys.SecondFactorForm

    def form_invalid(self, form: Any) -> HttpResponse:
        return _render_invalid(self, form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        user = self.stage.login.user
        types = set(Authenticator.objects.filter(user=user).values_list("type", flat=True))
        context["person"] = user
        context["has_app"] = Authenticator.Type.TOTP in types
        if Authenticator.Type.WEBAUTHN in types and mfa.can_use_passkeys(self.request):
            context["passkey"] = json.dumps(context["js_data"]["request_options"])
        else:
            self.auth_form.fields["code"].widget.attrs["autofocus"] = True
        return context


class SignInByPasskey(LoginWebAuthnView):  # type: ignore[misc]
    """View that signs in with a passkey; GET returns the browser's challenge."""

    form_class = passkeys.SignInForm

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # each challenge is stored in a session, so limit their number and lifetime
        if not ratelimit.consume(request, app="allauth.mfa", action="webauthn_login", limit_get=True):
            too_many: HttpResponse = ratelimit.respond_429(request)
            return too_many
        request.session.set_expiry(PASSKEY_TIMEOUT)
        response: HttpResponse = super().get(request, *args, **kwargs)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        notify_error(self.request, _("This passkey is not registered here. Sign in another way."))
        return redirect("account_login")


class SignOut(views.LogoutView):  # type: ignore[misc]
    template_name = "console/people/sessions/sign_out.html"

    def get_redirect_url(self) -> str:
        return providers.sign_out_url(self.request) or str(super().get_redirect_url())

    def post(self, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post(*args, **kwargs)
        # drafts, and the pages that "back" would show
        response["Clear-Site-Data"] = '"cache", "storage"'
        return response


def _render_invalid(view: Any, form: Any) -> HttpResponse:
    """Render an invalid form with status 422, or 429 if the client must wait."""
    limited = [
        error for errors in form.errors.as_data().values() for error in errors if error.code == "limited"
    ]
    response: HttpResponse = view.render_to_response(
        view.get_context_data(form=form), status=429 if limited else 422
    )
    if limited:
        response["Retry-After"] = str(limited[0].params["seconds"])
    return response


@login_required
@never_cache
def signed_in(request: HttpRequest) -> HttpResponse:
    """Show the end of a sign-in in a dialog or another tab, from which the waiting page reads the new CSRF token."""
    return render(request, "console/people/sessions/signed_in.html")


@login_not_required
@never_cache
def inactive(request: HttpRequest) -> HttpResponse:
    """Show the page for a disabled user after the correct password."""
    return render(request, "console/people/sessions/inactive.html", status=403)


sign_in = SignIn.as_view()
second_factor = SecondFactor.as_view()
sign_in_by_passkey = login_not_required(never_cache(SignInByPasskey.as_view()))
sign_out = login_not_required(SignOut.as_view())
