"""OpenID Connect checks on top of allauth, which verifies the state and PKCE and otherwise trusts TLS.

The configuration must be that of the configured issuer, its addresses safe, and the ID token signed by the
issuer, for this client, for this sign-in and about the same person as the other claims.
https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
"""

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jwt
import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import get_request_param
from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, salted_hmac

from storage.access import key_set
from storage.domain.access.identity import is_safe_url
from storage.domain.access.sign_in import Provider

SIZE_LIMIT: Final = 1 << 20  # bytes of an answer
AGAIN: Final = "prompt=login"  # the only parameter that pages add: the provider shall ask for credentials
_LEEWAY: Final = 60  # seconds by which clocks may differ
_ADDRESSES: Final = (
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "jwks_uri",
    "end_session_endpoint",
)

_SUBJECT_LIMIT: Final = 191  # characters that allauth has for one
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")  # NUL, and halves of surrogate pairs


class RefusedSignIn(OAuth2Error):  # type: ignore[misc]
    """The provider's response is untrusted; the text quotes nothing of it."""


def find_provider(provider_id: str) -> Provider | None:
    return next((it for it in settings.SIGN_IN_PROVIDERS if it.id == provider_id), None)


def app_of(provider: Provider) -> SocialApp:
    """Convert a provider to allauth's model, unsaved."""
    return SocialApp(
        provider="openid_connect",
        provider_id=provider.id,
        name=provider.name,
        client_id=provider.client_id,
        secret=provider.client_secret,
        settings={
            "server_url": provider.issuer,
            "oauth_pkce_enabled": True,
            "scope": list(provider.scopes),
        },
    )


def claims_of(account: SocialAccount) -> dict[str, Any]:
    """Return the claims of the last sign-in; the signed claims take precedence."""
    return {**account.extra_data.get("userinfo", {}), **account.extra_data.get("id_token", {})}


def verified_email(claims: Mapping[str, Any]) -> str:
    """Return the verified e-mail address, or an empty string."""
    email = claims.get("email")
    return email.lower() if isinstance(email, str) and claims.get("email_verified") is True else ""


def session() -> requests.Session:
    """Return an HTTP session with a five-second timeout and no redirects, which could lead to unsafe addresses."""
    made = _Session()
    made.max_redirects = 0
    return made


class _Session(requests.Session):
    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        response = super().send(request, **{**kwargs, "timeout": key_set.TIMEOUT, "stream": True})
        # read here, so that an endless answer ends
        content = response.raw.read(SIZE_LIMIT + 1, decode_content=True)
        if len(content) > SIZE_LIMIT:
            raise requests.exceptions.ContentDecodingError("the answer is too large")
        response._content, response._content_consumed = content, True
        return response


class _Client(OAuth2Client):  # type: ignore[misc]
    def get_redirect_url(self, authorization_url: str, scope: list[str], extra_params: dict[str, str]) -> str:
        url: str = super().get_redirect_url(
            authorization_url, scope, {**extra_params, "nonce": _nonce_of(self.state)}
        )
        return url


def _nonce_of(state: str) -> str:
    """Derive the nonce of a sign-in from its random state in the session."""
    return salted_hmac("console.people.open_id", state, algorithm="sha256").hexdigest()


class OpenIdAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    client_class = _Client

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return the provider's configuration; raises RefusedSignIn for another issuer or an unsafe address."""
        config: dict[str, Any] = super().openid_config
        issuer = self.get_provider().app.settings["server_url"]
        if not isinstance(config, dict) or str(config.get("issuer", "")).rstrip("/") != issuer:
            raise RefusedSignIn("The configuration belongs to another issuer.")
        if not all(is_safe_url(str(config[name])) for name in _ADDRESSES if name in config):
            raise RefusedSignIn("The configuration has an unsafe address.")
        return config

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        claims = self._verify(app, kwargs["response"].get("id_token"))
        data = {"id_token": claims}
        if "userinfo_endpoint" in self.openid_config:
            data["userinfo"] = self._fetch_user_info(token.token)
            if not isinstance(data["userinfo"], dict):
                raise RefusedSignIn("The user info is not a JSON object.")
            if data["userinfo"].get("sub") != claims["sub"]:
                raise RefusedSignIn("The user info is about another person.")
        _refuse_what_cannot_be_kept(data)
        _refuse_other_issuer(app.provider_id, claims)
        return self.get_provider().sociallogin_from_response(request, data)

    def _verify(self, app: SocialApp, id_token: object) -> dict[str, Any]:
        """Verify an ID token and return its claims; raises RefusedSignIn if it is not valid for this sign-in."""
        if not isinstance(id_token, str):
            raise RefusedSignIn("The answer has no ID token.")
        try:
            identifier = jwt.get_unverified_header(id_token).get("kid")
            key = self._fetch_keys().get(identifier) if isinstance(identifier, str | None) else None
            if key is None:
                raise RefusedSignIn("The ID token is signed with an unknown key.")
            claims = jwt.decode(
                id_token,
                key.public,
                algorithms=key.algorithms,  # from the key: a token must not choose how it is verified
                audience=app.client_id,
                issuer=self.openid_config["issuer"],
                leeway=_LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise RefusedSignIn(f"The ID token is refused: {type(error).__name__}.") from None
        if claims.get("azp", app.client_id) != app.client_id:
            raise RefusedSignIn("The ID token is for another client.")
        nonce = _nonce_of(str(get_request_param(self.request, "state")))
        if not constant_time_compare(str(claims.get("nonce", "")), nonce):
            raise RefusedSignIn("The ID token is of another sign-in.")
        return claims

    def _fetch_keys(self) -> key_set.Keys:
        with get_adapter().get_requests_session() as opened:
            response = opened.get(self.openid_config["jwks_uri"])
            response.raise_for_status()
        try:
            keys = key_set.read_keys(response.json()["keys"])
        except (KeyError, TypeError, AttributeError, ValueError):
            raise RefusedSignIn("The keys of the issuer cannot be read.") from None
        # a token without a key id is signed with the only key
        return {**keys, None: next(iter(keys.values()))} if len(keys) == 1 else keys


def _refuse_what_cannot_be_kept(data: Mapping[str, Any]) -> None:
    """Refuse an overlong subject, and texts that PostgreSQL cannot store."""
    subject = data["id_token"]["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_LIMIT:
        raise RefusedSignIn(f"The subject must be a text of 1 to {_SUBJECT_LIMIT} characters.")
    if any(map(_UNSTORABLE.search, _texts_in(data))):
        raise RefusedSignIn("The claims have characters that no text can have.")


def _texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield name
                yield from _texts_in(inner)
        case list():
            for inner in value:
                yield from _texts_in(inner)


def _refuse_other_issuer(provider_id: str, claims: Mapping[str, Any]) -> None:
    """Refuse a subject known from another issuer, as a provider's id may have been reassigned."""
    known = SocialAccount.objects.filter(provider=provider_id, uid=claims["sub"]).first()
    issuer = known.extra_data.get("id_token", {}).get("iss") if known is not None else None
    if issuer is not None and issuer != claims["iss"]:
        raise RefusedSignIn("The person is known from another issuer.")


class OpenIdProvider(OpenIDConnectProvider):  # type: ignore[misc]
    oauth2_adapter_class = OpenIdAdapter

    def get_scope_from_request(self, request: HttpRequest) -> list[str]:
        scope: list[str] = self.get_scope()
        return scope

    def get_auth_params_from_request(self, request: HttpRequest, action: str) -> dict[str, str]:
        # max_age has the provider say when the person signed in there
        return {"prompt": "login", "max_age": "0"} if _is_again(request) else {}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().get_redirect_from_request_kwargs(request), "again": _is_again(request)}


def _is_again(request: HttpRequest) -> bool:
    return request.GET.get("auth_params") == AGAIN


def is_recent(sociallogin: SocialLogin, longest: int) -> bool:
    """Return whether the provider reauthenticated the user when asked; without auth_time, it is trusted."""
    signed_in_at = claims_of(sociallogin.account).get("auth_time")
    if not sociallogin.state.get("again") or not isinstance(signed_in_at, int | float):
        return True
    return time.time() - signed_in_at < longest + _LEEWAY
