import time
from dataclasses import replace

import jwt
import pytest
from azure.data.tables._authentication import _HttpChallenge

from storage.access.identity import Identity
from storage.domain.access.grants import OWNER
from storage.domain.access.identity import Trust
from storage.domain.errors import AuthenticationFailed, InvalidAuthenticationInfo
from storage.protocol import bearer

TRUST = Trust(
    issuer="https://sts.example/tenant/",
    audiences=("https://storage.azure.com/", "other"),
    authorization_uri="https://sts.example/tenant/oauth2/authorize",
)
MESSAGE = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
IDENTITY = Identity(Trust())


def token(lifetime=600):
    claims = {"sub": "ada", "exp": int(time.time()) + lifetime}
    return jwt.encode(claims, "s" * 32, algorithm="HS256").encode()


def grant(header, scheme="https"):
    return bearer.grant(IDENTITY, header, scheme, "account1", time.time())


@pytest.mark.parametrize(
    ("trust", "tenant", "resource"),
    [
        (TRUST, "tenant", "https://storage.azure.com"),
        (Trust(), "common", "https://storage.azure.com"),
        (replace(TRUST, audiences=("api://x", "https://y/")), "tenant", "https://y"),
        (replace(TRUST, audiences=("api://x", "1-2-3")), "tenant", ""),
    ],
)
def test_the_sdk_finds_tenant_and_resource(trust, tenant, resource):
    result = _HttpChallenge(bearer.write_challenge(trust))
    assert (result.tenant_id, result.resource, result.scope) == (tenant, resource, "")


def test_the_challenge_names_the_required_token():
    error = bearer.token_required(TRUST, AuthenticationErrorDetail="Because.")

    assert (error.code, error.text) == ("InvalidAuthenticationInfo", MESSAGE)
    assert error.details == {
        "WWW-Authenticate": bearer.write_challenge(TRUST),
        "AuthenticationErrorDetail": "Because.",
    }


@pytest.mark.parametrize("prefix", [b"Bearer ", b"bearer ", b"BEARER   ", b" Bearer "])
async def test_grants(prefix):
    assert await grant(prefix + token()) == (OWNER, "ada")


async def test_refuses_plain_http():
    with pytest.raises(AuthenticationFailed) as refusal:
        await grant(b"Bearer " + token(), scheme="http")
    detail = "Authentication scheme Bearer is not allowed with HTTP."
    assert refusal.value.details == {"AuthenticationErrorDetail": detail}


@pytest.mark.parametrize("header", [b"Bearer", b"Bearer x", b"Bearer a.b.c", b"Bearer \xff\xfe.x.y"])
async def test_a_malformed_token_is_challenged(header):
    with pytest.raises(InvalidAuthenticationInfo) as refusal:
        await grant(header)
    assert refusal.value.text == MESSAGE
    assert refusal.value.details == {
        "WWW-Authenticate": bearer.write_challenge(IDENTITY.trust),
        "AuthenticationErrorDetail": "The token is not a JSON Web Token.",
    }


async def test_an_expired_token_is_not():
    with pytest.raises(AuthenticationFailed):
        await grant(b"Bearer " + token(-600))
