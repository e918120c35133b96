"""Sign-in with an external provider: who may sign in, and how a user is created for them."""

import logging
import re
import secrets
from collections.abc import Collection, Mapping
from typing import Any, Final, NoReturn
from urllib.parse import urlencode

import requests
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base import AuthError, AuthProcess
from allauth.socialaccount.signals import social_account_added
from django.conf import settings
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from console.models import Invitation, User
from console.people import invitations, open_id, setup, sign_ins, users
from console.people.reauthentication import RECENT
from console.site.access import actor_named
from console.site.toasts import notify_error, notify_success
from storage.activity import activity
from storage.domain.access.actor import SERVER
from storage.domain.access.identity import read_roles
from storage.domain.access.sign_in import Provider
from storage.people import members
from storage.people.subject import PeopleVerb

logger = logging.getLogger(__name__)

_NAMES: Final = ("preferred_username", "email", "name", "sub")  # the first claim present is the name


def connections(user: User) -> list[dict[str, object]]:
    """Return a user's connected provider accounts, with ``person`` as the name there."""
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
    return [
        {"id": it.id, "name": it.name, "address": reverse("openid_connect_login", args=[it.id])}
        for it in settings.SIGN_IN_PROVIDERS
    ]


def sign_out_url(request: HttpRequest) -> str:
    """Return the provider's sign-out URL for this session; empty if it has none or is unavailable."""
    ways = get_authentication_records(request, request.user) if request.user.is_authenticated else []
    provider = open_id.find_provider(
        next((way["provider"] for way in reversed(ways) if "provider" in way), "")
    )
    if provider is None or not provider.signs_out:
        return ""
    try:
        config = open_id.OpenIdAdapter(request, provider.id).openid_config
    except (requests.RequestException, open_id.RefusedSignIn, ValueError) as error:
        logger.warning("Signing out at %s failed: %s", provider.name, type(error).__name__)
        return ""
    url = str(config.get("end_session_endpoint", ""))
    back = request.build_absolute_uri(reverse("account_login"))
    query = urlencode({"client_id": provider.client_id, "post_logout_redirect_uri": back})
    # the policy of the page lets its form lead nowhere else
    return f"{url}?{query}" if provider.is_of_origin(url) else ""


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        return [open_id.app_of(it) for it in settings.SIGN_IN_PROVIDERS if provider in {it.id, None}]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> open_id.OpenIdProvider:
        return open_id.OpenIdProvider(request, app=self.get_app(request, provider))

    def generate_state_param(self, state: Mapping[str, Any]) -> str:
        return secrets.token_urlsafe(32)

    def get_requests_session(self) -> requests.Session:
        return open_id.session()

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Refuse people not admitted by the provider's rules, and apply the roles of groups to others."""
        # allauth must not match users by e-mail address: alone it proves nothing here
        sociallogin.email_addresses = []
        provider = open_id.find_provider(sociallogin.account.provider)
        assert provider is not None
        claims = open_id.claims_of(sociallogin.account)
        groups = read_roles(claims, provider.groups_claim)
        is_admitted = provider.admits(groups, open_id.verified_email(claims))
        if is_admitted and not sociallogin.is_existing and provider.links_by_email:
            self._link(request, sociallogin, open_id.verified_email(claims))
        if sociallogin.is_existing:
            _apply_groups(sociallogin.user, provider, groups if is_admitted else ())
        username = sociallogin.user.username if sociallogin.is_existing else ""
        if not is_admitted:
            self._refuse(
                request, provider.name, _("Your %(name)s user may not sign in here. Ask an admin."), username
            )
        if not open_id.is_recent(sociallogin, RECENT):
            self._refuse(request, provider.name, _("Sign-in with %(name)s failed. Try again."), username)

    def _link(self, request: HttpRequest, sociallogin: SocialLogin, email: str) -> None:
        """Connect the user named by a verified e-mail address; admins must connect providers themselves."""
        if not email or sociallogin.state.get("process") == AuthProcess.CONNECT:
            return
        user = User.objects.filter(username=email, is_admin=False).first()
        provider = sociallogin.account.provider
        if user is not None and not SocialAccount.objects.filter(user=user, provider=provider).exists():
            sociallogin.connect(request, user)

    def _refuse(self, request: HttpRequest, name: str, message: str, username: str = "") -> NoReturn:
        sign_ins.failed(request, username, name)
        notify_error(request, message % {"name": name})
        self._return(request)

    def _return(self, request: HttpRequest) -> NoReturn:
        raise ImmediateHttpResponse(
            redirect("people:security" if request.user.is_authenticated else "account_login")
        )

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        if setup.is_open():  # the setup link creates the first admin
            raise ImmediateHttpResponse(redirect("account_login"))
        provider = open_id.find_provider(sociallogin.account.provider)
        if (provider is not None and provider.admits_everyone) or _invitation(
            request, sociallogin
        ) is not None:
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
        activity.record(PeopleVerb.USER_CREATE, by, detail={"user": user.username})
        invitation = _invitation(request, sociallogin)
        if invitation is not None:
            invitations.join(invitation, user, by=by)
            sociallogin.state["next"] = reverse("home:index")
        provider = open_id.find_provider(sociallogin.account.provider)
        if provider is not None:
            claims = open_id.claims_of(sociallogin.account)
            _apply_groups(user, provider, read_roles(claims, provider.groups_claim))
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
            # without the text of other exceptions, which may contain what the provider sent
            is_ours = isinstance(exception, open_id.RefusedSignIn)
            reason = str(exception) if is_ours else type(exception).__name__
            logger.warning("Sign-in with %s failed: %s", provider.name, reason)
            self._refuse(request, provider.name, _("Sign-in with %(name)s failed. Try again."))
        self._return(request)


@receiver(social_account_added)
def _record_connection(request: HttpRequest, sociallogin: SocialLogin, **_kwargs: Any) -> None:
    sign_ins.changed(request, sociallogin.user, added="connection")
    notify_success(request, _("Connected the sign-in provider."))


def _invitation(request: HttpRequest, sociallogin: SocialLogin) -> Invitation | None:
    """Return the invitation whose page started the sign-in, if any."""
    page = reverse("people:join")
    started_there = sociallogin.state.get("next") == page
    return invitations.find(request.session.get(page, "")) if started_there else None


def _name_in(account: SocialAccount) -> str:
    claims = open_id.claims_of(account)
    return next((str(claims[name]) for name in _NAMES if claims.get(name)), account.uid)


def _free_name(proposed: str) -> str:
    """Return an unused user name, with a number appended if needed."""
    name = re.sub(r"[^a-z0-9._@+-]+", "-", User.normalize_username(proposed)).strip("-")[:140] or "user"
    taken = set(User.objects.filter(username__startswith=name).values_list("username", flat=True))
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(one for one in numbered if one not in taken)


@transaction.atomic
def _apply_groups(user: User, provider: Provider, groups: Collection[str]) -> None:
    """Apply the roles and admin rights of a user's groups, revoking those of former groups.

    Rights granted by people stay.
    """
    try:
        users.set_given_admin(user, is_admin=provider.is_admin(groups), given_by=provider.id, by=SERVER)
    except users.LastAdmin:
        logger.warning(
            "The groups of %s take admin rights from %s, the only admin, who keeps them.", provider.id, user
        )
    members.set_given_roles(user, provider.roles_of(groups), given_by=provider.id, by=SERVER)
