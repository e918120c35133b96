"""Verification of ID tokens: the issuer, the client, the sign-in and the person."""

import logging
import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.core.cache import cache

from console.models import User
from storage.domain.access.sign_in import Provider
from storage.models import Activity
from tests.identity_provider import CLIENT_ID, CLIENT_SECRET, serving
from tests.issuer import EC_KEY, OTHER_KEY
from tests.people.conftest import provider_of
from tests.people.test_providers import go, sign_in


def forge(**changes):
    return lambda it: it.__dict__.update(changes)


def sign(**claims):
    return forge(signed=claims)


def person(**claims):
    """Change the claims at both places that have them."""

    def change(it):
        it.signed = claims
        it.person = {**it.person, **claims}

    return change


def tell(**members):
    return lambda it: it.told.update({name: value.format(url=it.url) for name, value in members.items()})


def test_refuses_forged_answers(visit, settings, caplog):
    for change, reason in [
        (forge(key=OTHER_KEY), "refused: InvalidSignatureError"),
        (forge(key=EC_KEY, algorithm="ES256"), "refused: InvalidAlgorithmError"),
        (forge(key=CLIENT_SECRET * 2, algorithm="HS256"), "refused: InvalidAlgorithmError"),
        (forge(key=None, algorithm="none"), "refused: InvalidAlgorithmError"),
        (sign(aud="another"), "refused: InvalidAudienceError"),
        (sign(azp="another"), "for another client"),
        (sign(iss="https://another.example"), "refused: InvalidIssuerError"),
        (sign(exp=1_000_000_000), "refused: ExpiredSignatureError"),
        (sign(sub=None), "refused: MissingRequiredClaimError"),
        (sign(nonce=None), "of another sign-in"),
        (sign(nonce="0" * 64), "of another sign-in"),
        (sign(sub="another"), "about another person"),
        (person(sub="x" * 192), "must be a text of 1 to 191 characters"),
        (person(sub="x" * 5000), "must be a text of 1 to 191 characters"),
        (person(sub=""), "must be a text of 1 to 191 characters"),
        (person(name="Jane\0Doe"), "characters that no text can have"),
        (person(address={"lines": ["\ud800"]}), "characters that no text can have"),
        (forge(without_token=True), "has no ID token"),
        (tell(issuer="https://another.example"), "belongs to another issuer"),
        (tell(jwks_uri="http://example.org/keys"), "has an unsafe address"),
        (tell(token_endpoint="http://example.org/token"), "has an unsafe address"),
        (tell(userinfo_endpoint="{url}/moved"), "TooManyRedirects"),
        (tell(userinfo_endpoint="{url}/endless"), "ContentDecodingError"),
    ]:
        cache.clear()  # so many attempts would have to wait
        caplog.clear()
        with serving() as provider:
            settings.SIGN_IN_PROVIDERS = (provider_of(provider),)
            provider.id = settings.SIGN_IN_PROVIDERS[0].id
            change(provider)
            client = visit(None)
            with caplog.at_level(logging.WARNING):
                assert sign_in(client, provider)["Location"] == "/ui/login/", reason
        assert reason in caplog.text
    assert b"Sign-in with Elsewhere failed" in client.get("/ui/login/").content
    assert not User.objects.filter(username="jane.doe").exists()


def test_a_failed_sign_in_is_recorded(visit, elsewhere):
    sign_in(visit(None), elsewhere)
    forge(key=OTHER_KEY)(elsewhere)
    sign_in(visit(None), elsewhere)
    assert Activity.objects.get(verb="user.sign-in-failed").detail == {"by": ["Elsewhere"]}


@pytest.fixture
def two(settings):
    """Run two providers, each with a user of the same subject."""
    with serving() as one, serving() as other:
        other.person = {"sub": one.person["sub"], "preferred_username": "Joe"}
        settings.SIGN_IN_PROVIDERS = tuple(
            Provider(it.url, CLIENT_ID, CLIENT_SECRET, name, admits_everyone=True, given_id=name.lower())
            for it, name in ((one, "One"), (other, "Other"))
        )
        one.id, other.id = "one", "other"
        yield one, other


def test_the_same_subject_elsewhere_is_another_person(visit, two):
    one, other = two
    names = []
    for place in (one, other, one):
        client = visit(None)
        page = client.get("/ui/login/").content
        assert b"Sign in with One" in page and b"Sign in with Other" in page
        sign_in(client, place)
        names.append(client.get("/ui/").context["user"].username)
    assert names == ["jane.doe", "joe", "jane.doe"]


def test_a_provider_that_is_down_does_not_block_the_other(visit, two, settings):
    one, other = two
    down = replace(settings.SIGN_IN_PROVIDERS[0], issuer="http://127.0.0.1:9")
    settings.SIGN_IN_PROVIDERS = (down, settings.SIGN_IN_PROVIDERS[1])
    client = visit(None)
    assert sign_in(client, one)["Location"] == "/ui/login/"
    assert b"One cannot be reached" in client.get("/ui/login/").content
    assert sign_in(client, other)["Location"] == "/ui/"


def test_an_answer_of_one_provider_is_none_of_the_other(visit, two):
    """The mix-up attack: the state of a sign-in is valid at the address of its provider only."""
    one, _ = two
    client = visit(None)
    there = client.post(f"/ui/login/with/{one.id}/")["Location"]
    back = urlsplit(requests.get(there, allow_redirects=False, timeout=60).headers["Location"])
    assert client.get(f"/ui/login/with/other/callback/?{back.query}")["Location"] == "/ui/login/"
    stranger = visit(None)
    assert stranger.get(f"{back.path}?{back.query}")["Location"] == "/ui/login/"
    assert not SocialAccount.objects.exists()


def test_an_id_reused_by_another_issuer_signs_nobody_in(visit, two, settings):
    one, other = two
    sign_in(visit(None), one)
    settings.SIGN_IN_PROVIDERS = (replace(settings.SIGN_IN_PROVIDERS[1], given_id="one"),)
    other.id = "one"
    client = visit(None)
    assert sign_in(client, other)["Location"] == "/ui/login/"
    assert client.get("/ui/").status_code == 302


def test_asks_for_what_is_set_only(visit, elsewhere, configure):
    configure(scopes=("openid", "groups"))
    client = visit(None)
    answer = client.post(
        f"/ui/login/with/{elsewhere.id}/?scope=admin&auth_params=client_id%3Dmine%26prompt%3Dnone"
    )
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert sorted(query["scope"][0].split()) == ["groups", "openid"]
    assert query["client_id"] == [CLIENT_ID]
    assert "prompt" not in query


def test_a_second_factor_is_still_required(visit, elsewhere):
    sign_in(visit(None), elsewhere)
    TOTP.activate(User.objects.get(username="jane.doe"), generate_totp_secret())
    client = visit(None)
    assert sign_in(client, elsewhere)["Location"].startswith("/ui/login/mfa/")
    assert client.get("/ui/").status_code == 302


def test_a_provider_is_trusted_with_the_second_factor(visit, elsewhere, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    client = visit(None)
    sign_in(client, elsewhere)
    assert client.get("/ui/").status_code == 200


def test_confirming_needs_a_recent_sign_in_there(visit, elsewhere):
    for age, is_confirmed in [(0, True), (7200, False), (None, True)]:
        client = visit(None)
        sign_in(client, elsewhere)
        elsewhere.signed = {} if age is None else {"auth_time": int(time.time()) - age}
        again = f"/ui/login/with/{elsewhere.id}/?auth_params=prompt%3Dlogin"
        assert go(client, again, next="/ui/me/security/")["Location"] == "/ui/me/security/", age
        assert elsewhere.asked["prompt"] == "login" and elsewhere.asked["max_age"] == "0", age
        assert (
            b"Sign-in with Elsewhere failed" in client.get("/ui/me/security/").content
        ) is not is_confirmed, age


def test_signs_out_there_as_well_if_told_to(visit, elsewhere, configure):
    client = visit(None)
    sign_in(client, elsewhere)
    assert client.post("/ui/logout/")["Location"] == "/ui/login/"
    configure(signs_out=True)
    sign_in(client, elsewhere)
    there = urlsplit(client.post("/ui/logout/")["Location"])
    assert f"{there.scheme}://{there.netloc}{there.path}" == f"{elsewhere.url}/logout"
    assert parse_qs(there.query) == {
        "client_id": [CLIENT_ID],
        "post_logout_redirect_uri": ["http://testserver/ui/login/"],
    }
    assert client.get("/ui/").status_code == 302
    elsewhere.told["end_session_endpoint"] = "https://example.org/logout"
    sign_in(client, elsewhere)
    assert client.post("/ui/logout/")["Location"] == "/ui/login/"


def test_the_secret_is_not_shown(elsewhere):
    assert CLIENT_SECRET not in repr(provider_of(elsewhere))
