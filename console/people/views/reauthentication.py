"""Reauthentication page, with any of the user's sign-in methods."""

import json
from typing import Any

from allauth.account.forms import ReauthenticateForm
from allauth.account.views import ReauthenticateView as ByPassword
from allauth.mfa.base.views import ReauthenticateView as ByCode
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.views import ReauthenticateWebAuthnView as ByPasskey
from allauth.socialaccount.models import SocialAccount
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from console.people import providers, reauthentication
from console.people.forms import passkeys
from console.people.forms.sessions import ReauthenticateCodeForm
from console.people.mfa import can_use_passkeys
from console.site.allauth_parts import webauthn


class _ReauthenticationMixin:
    """Mixin for the page with one form per authentication method, each with its own view."""

    template_name = "console/people/sessions/reauthenticate.html"
    request: Any
    method = ""

    @method_decorator(never_cache)
    @method_decorator(sensitive_post_parameters("password", "code", "credential"))
    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponse:
        reauthentication.keep_account(self.request)
        response: HttpResponse = super().dispatch(*args, **kwargs)  # type: ignore[misc]
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return {**found, **self._method_forms(found.get("form"))}

    def form_valid(self, form: Form) -> HttpResponse:
        """Confirm the user and replace the session's key, so that a stolen one is not confirmed."""
        response: HttpResponse = super().form_valid(form)  # type: ignore[misc]
        self.request.session.replace_key()
        return response

    def form_invalid(self, form: Form) -> HttpResponse:
        response: HttpResponse = self.render_to_response(  # type: ignore[attr-defined]
            self.get_context_data(form=form), status=422
        )
        return response

    def _method_forms(self, sent: Form | None) -> dict[str, Any]:
        user = self.request.user
        types = set(Authenticator.objects.filter(user=user).values_list("type", flat=True))
        forms: dict[str, Any] = {}
        if user.has_usable_password():
            forms["password"] = ReauthenticateForm(user=user)
        if types & {Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES}:
            forms["code"] = ReauthenticateCodeForm(user=user)
        if sent is not None and self.method in forms:
            forms[self.method] = sent
        for form in forms.values():
            for field in form.fields.values():
                field.widget.attrs.pop("placeholder", None)
                field.help_text = ""
        if "password" in forms:
            forms["password"].fields["password"].widget.attrs["autofocus"] = True
        if Authenticator.Type.WEBAUTHN in types and can_use_passkeys(self.request):
            forms["passkey"] = json.dumps(webauthn().begin_authentication(user))
        connected = set(SocialAccount.objects.filter(user=user).values_list("provider", flat=True))
        forms["providers"] = [one for one in providers.offered() if one["id"] in connected]
        return forms

    def _check_reauthentication_method_available(self, request: HttpRequest) -> None:
        """Skip allauth's check, as users with only a provider reauthenticate there."""


class ReauthenticateByPassword(_ReauthenticationMixin, ByPassword):  # type: ignore[misc]
    method = "password"


class ReauthenticateByCode(_ReauthenticationMixin, ByCode):  # type: ignore[misc]
    method = "code"
    form_class = ReauthenticateCodeForm


class ReauthenticateByPasskey(_ReauthenticationMixin, ByPasskey):  # type: ignore[misc]
    form_class = passkeys.ReauthenticateForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        is_refused = self.request.method == "POST"
        found = super().get_context_data(**kwargs)
        return {**found, "complaint": _("This passkey is not registered to you.") if is_refused else ""}


by_password = ReauthenticateByPassword.as_view()
by_code = ReauthenticateByCode.as_view()
by_passkey = ReauthenticateByPasskey.as_view()
