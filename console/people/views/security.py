"""Security settings: passkeys, authenticator app and recovery codes."""

import json
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import AddWebAuthnView, EditWebAuthnView, RemoveWebAuthnView
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from console.people import mfa, providers
from console.people.forms import passkeys
from console.people.forms.sessions import AppForm
from console.people.reauthentication import recently_authenticated
from console.site.access import user_of
from console.site.allauth_parts import webauthn
from console.site.toasts import notify_success

secret_page = method_decorator([never_cache, recently_authenticated], name="dispatch")  # type: ignore[list-item]
SECURITY = reverse_lazy("people:security")


@login_required
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    factors = Authenticator.objects.filter(user=user).order_by("created_at")
    context = {
        "passkeys": [one for one in factors if one.type == Authenticator.Type.WEBAUTHN],
        "app": next((one for one in factors if one.type == Authenticator.Type.TOTP), None),
        "codes_left": _codes_left(list(factors)),
        "can_use_passkeys": mfa.can_use_passkeys(request),
        "connected": providers.connections(user),
        "providers": providers.unconnected(user),
    }
    return render(request, "console/people/security/index.html", context)


def _codes_left(found: list[Authenticator]) -> int | None:
    """Return the number of unused recovery codes; None if none were generated."""
    codes = next((one for one in found if one.type == Authenticator.Type.RECOVERY_CODES), None)
    return None if codes is None else len(codes.wrap().get_unused_codes())


class _SuccessMixin:
    """Mixin that redirects to the security page with a message, or to new recovery codes."""

    success_text: str | Promise = ""

    def get_success_url(self) -> str:
        notify_success(self.request, str(self.success_text))  # type: ignore[attr-defined]
        is_first = getattr(self, "did_generate_recovery_codes", False)
        return str(reverse_lazy("mfa_view_recovery_codes") if is_first else SECURITY)


class _InvalidFormMixin:
    """Mixin that responds to an invalid form with status 422."""

    def form_invalid(self, form: Any) -> HttpResponse:
        context = self.get_context_data(form=form)  # type: ignore[attr-defined]
        response: HttpResponse = self.render_to_response(context, status=422)  # type: ignore[attr-defined]
        return response


@secret_page
class AddPasskey(_InvalidFormMixin, _SuccessMixin, AddWebAuthnView):  # type: ignore[misc]
    template_name = "console/people/security/add_passkey.html"
    form_class = passkeys.AddForm
    success_text = _("Added the passkey.")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super(AddWebAuthnView, self).get_context_data(**kwargs)
        # a passkey stored on the device, so that it signs in without a user name
        context["options"] = json.dumps(webauthn().begin_registration(self.request.user, passwordless=True))
        context["can_use_passkeys"] = mfa.can_use_passkeys(self.request)
        return context


@secret_page
class RenamePasskey(_InvalidFormMixin, EditWebAuthnView):  # type: ignore[misc]
    template_name = "console/people/security/rename_passkey.html"
    form_class = passkeys.RenameForm
    success_url = SECURITY


@secret_page
class RemovePasskey(_SuccessMixin, RemoveWebAuthnView):  # type: ignore[misc]
    template_name = "console/people/security/remove_passkey.html"
    success_text = _("Removed the passkey.")


@secret_page
class AddApp(_InvalidFormMixin, _SuccessMixin, ActivateTOTPView):  # type: ignore[misc]
    template_name = "console/people/security/add_app.html"
    form_class = AppForm
    success_text = _("Turned on the authenticator app. You enter a code when you sign in.")


@secret_page
class RemoveApp(_SuccessMixin, DeactivateTOTPView):  # type: ignore[misc]
    template_name = "console/people/security/remove_app.html"
    success_text = _("Turned off the authenticator app.")


@secret_page
class ShowCodes(ViewRecoveryCodesView):  # type: ignore[misc]
    """View that shows the recovery codes once."""

    template_name = "console/people/security/codes.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().get_context_data(**kwargs)
        found["text"] = "".join(f"{code}\n" for code in found["unused_codes"])
        return found

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        if not context["can_view_codes"]:
            return redirect(SECURITY)
        response: HttpResponse = super().render_to_response(context, **kwargs)
        return response


@secret_page
class NewCodes(_InvalidFormMixin, GenerateRecoveryCodesView):  # type: ignore[misc]
    template_name = "console/people/security/new_codes.html"


add_passkey = AddPasskey.as_view()
rename_passkey = RenamePasskey.as_view()
remove_passkey = RemovePasskey.as_view()
add_app = AddApp.as_view()
remove_app = RemoveApp.as_view()
show_codes = ShowCodes.as_view()
new_codes = NewCodes.as_view()
