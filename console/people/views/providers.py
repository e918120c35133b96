"""Signing in with an external provider, and connecting one to a user."""

import logging
from collections.abc import Callable

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from requests import RequestException

from console.models import User
from console.people import providers, sign_ins
from console.people.open_id import OpenIdAdapter, RefusedSignIn
from console.people.reauthentication import recently_authenticated
from console.site.access import user_of
from console.site.toasts import notify_error, notify_success
from storage.rest.lookups import or_404

logger = logging.getLogger(__name__)


def _handle_unreachable(view: Callable[..., HttpResponse]) -> Callable[[HttpRequest, str], HttpResponse]:
    """Wrap a view to redirect with an error message when the provider is unreachable or refuses the sign-in."""

    def answer(request: HttpRequest, provider_id: str) -> HttpResponse:
        name = or_404(next((one["name"] for one in providers.offered() if one["id"] == provider_id), None))
        try:
            return view(request, provider_id)
        except (RequestException, KeyError, ValueError) as error:
            message, reason = (
                _("%(name)s cannot be reached. Try again, or sign in another way."),
                type(error).__name__,
            )
        except RefusedSignIn as error:
            message, reason = _("Sign-in with %(name)s failed. Try again."), str(error)
        logger.warning("Sign-in with %s failed: %s", name, reason)
        notify_error(request, message % {"name": name})
        return redirect("people:security" if request.user.is_authenticated else "account_login")

    return answer


def _start(request: HttpRequest, provider_id: str) -> HttpResponse:
    answer: HttpResponse = OAuth2LoginView.adapter_view(OpenIdAdapter(request, provider_id))(request)
    return answer


def _finish(request: HttpRequest, provider_id: str) -> HttpResponse:
    answer: HttpResponse = OAuth2CallbackView.adapter_view(OpenIdAdapter(request, provider_id))(request)
    return answer


sign_in = login_not_required(never_cache(require_POST(_handle_unreachable(_start))))
callback = login_not_required(never_cache(_handle_unreachable(_finish)))


@require_POST
@recently_authenticated
def connect(request: HttpRequest, provider: str) -> HttpResponse:
    """Connect a provider to the signed-in user."""
    query = request.GET.copy()
    query["process"] = "connect"
    request.GET = query  # type: ignore[assignment]
    return _handle_unreachable(_start)(request, provider)


@require_POST
@recently_authenticated
def disconnect(request: HttpRequest, number: int) -> HttpResponse:
    user = user_of(request)
    connection = get_object_or_404(SocialAccount, user=user, pk=number)
    if _is_only_method(user, connection):
        notify_error(request, _("This is your only way to sign in. Set a password or add a passkey first."))
    else:
        connection.delete()
        sign_ins.changed(request, user, removed="connection")
        notify_success(request, _("Disconnected the sign-in provider."))
    return redirect("people:security")


def _is_only_method(user: User, connection: SocialAccount) -> bool:
    others = SocialAccount.objects.filter(user=user).exclude(pk=connection.pk)
    has_passkey = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN).exists()
    return not (user.has_usable_password() or has_passkey or others.exists())
