"""Sign-in with an external provider: who may sign in, and how a user is created for them."""

import logging
import re
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.signals import social_account_added
from django.conf import settings
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from console.models import Invitation, User
from console.people import invitations, setup, sign_ins
from console.site.access import actor_named
from console.site.notices import notify_error, notify_success
from storage.domain.service.activity import Verb
from storage.operations.activity import activity

logger = logging.getLogger(__name__)

_NAMES: Final = ("preferred_username", "email", "name", "sub")  # the first claim present is the name


def connections(user: User) -> list[dict[str, object]]:
    """Return the providers' accounts that are connected to a user; ``person``: the name at the provider."""
    names = {provider["id"]: provider["name"] for provider in offered()}
    return [
        {"pk": one.pk, "name": names.get(one.provider, one.provider), "person": _name_in(one)}
        for one in SocialAccount.objects.filter(user=user).order_by("pk")
    ]


def unconnected(user: User) -> list[dict[str, str]]:
    present = set(SocialAccount.objects.filter(user=user).values_list("provider", flat=True))
    return [provider for provider in offered() if provider["id"] not in present]


def offered() -> list[dict[str, str]]:
    """Return the id, name and sign-in URL of each configured provider."""
    provider = settings.SIGN_IN_PROVIDER
    if provider is None:
        return []
    address = reverse("openid_connect_login", args=[provider.id])
    return [{"id": provider.id, "name": provider.name, "address": address}]


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        # never match users by e-mail address: it proves nothing here
        sociallogin.email_addresses = []

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        if setup.is_open():  # the setup link creates the first admin
            raise ImmediateHttpResponse(redirect("account_login"))
        provider = settings.SIGN_IN_PROVIDER
        if (provider is not None and provider.admits_everyone) or _invitation(sociallogin) is not None:
            return True
        raise ImmediateHttpResponse(render(request, "console/people/sessions/not_invited.html", status=403))

    @transaction.atomic
    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        """Create the user without a password and with only the roles of the invitation."""
        user: User = sociallogin.user
        user.username = _free_name(_name_in(sociallogin.account))
        user.set_unusable_password()
        sociallogin.save(request)
        by = actor_named(request, user.username)
        activity.record(Verb.USER_CREATE, by, detail={"user": user.username})
        invitation = _invitation(sociallogin)
        if invitation is not None:
            invitations.join(invitation, user, by=by)
            sociallogin.state["next"] = reverse("home:index")
        return user

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        return reverse("people:security")

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        if error != AuthError.CANCELLED:
            # without the exception's text, which may contain what the provider sent
            logger.warning("Signing in with %s failed: %s", provider.name, type(exception).__name__)
            notify_error(request, _("Sign-in with %(name)s failed. Try again.") % {"name": provider.name})
        raise ImmediateHttpResponse(
            redirect("people:security" if request.user.is_authenticated else "account_login")
        )


@receiver(social_account_added)
def _record_connection(request: HttpRequest, sociallogin: SocialLogin, **_kwargs: Any) -> None:
    sign_ins.changed(request, sociallogin.user, added="connection")
    notify_success(request, _("Connected the sign-in provider."))


def _invitation(sociallogin: SocialLogin) -> Invitation | None:
    """Return the invitation whose page started the sign-in, if any."""
    address = urlsplit(sociallogin.state.get("next") or "")
    if address.path != reverse("people:join"):
        return None
    return invitations.find(parse_qs(address.query).get("token", [""])[0])


def _name_in(account: SocialAccount) -> str:
    data = account.extra_data.get("userinfo") or account.extra_data.get("id_token") or {}
    return next((str(data[name]) for name in _NAMES if data.get(name)), account.uid)


def _free_name(wanted: str) -> str:
    """Return an unused user name, with a number appended if the wanted one is taken."""
    name = re.sub(r"[^a-z0-9._@+-]+", "-", User.normalize_username(wanted)).strip("-")[:140] or "user"
    taken = set(User.objects.filter(username__startswith=name).values_list("username", flat=True))
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(one for one in numbered if one not in taken)
