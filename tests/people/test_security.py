"""Sign-in methods and sessions of users."""

import time
from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from console.people import sessions
from storage.models import Activity
from storage.people.subject import PeopleVerb
from tests.fixtures import PASSWORD

SECURITY = "/ui/me/security/"
SECRET_PAGES = ["app/", "app/off/", "codes/", "codes/new/", "passkeys/", "passkeys/1/", "passkeys/1/remove/"]
HOLLOW = (
    '{"id": "eA", "rawId": "eA", "type": "public-key", "clientExtensionResults": [], "response":'
    ' {"clientDataJSON": "e30", "attestationObject": "oA", "authenticatorData": "", "signature": "", "userHandle": 7}}'
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = "Mozilla/5.0 (Windows NT 10.0; Win64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0"


@pytest.fixture
def alice(visit):
    """Her browser, in which she has just proved who she is."""
    client = visit("alice")
    client.post("/ui/me/again/", {"password": PASSWORD})
    return client


@pytest.fixture
def codes(cast):
    """Alice's recovery codes; she has an authenticator app too."""
    TOTP.activate(cast["alice"], generate_totp_secret())
    return RecoveryCodes.activate(cast["alice"]).generate_codes()


def code_of(secret):
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def sign_in(client):
    return client.post("/ui/login/", {"login": "alice", "password": PASSWORD, "next": "/ui/me/"})


def verbs():
    return list(Activity.objects.filter(actor="alice").order_by("pk").values_list("verb", "detail"))


def test_an_app_is_set_up_and_asked_for(alice, visit, cast):
    secret = alice.get(f"{SECURITY}app/").context["form"].secret
    assert alice.post(f"{SECURITY}app/", {"code": "000000"}).status_code == 422
    answer = alice.post(f"{SECURITY}app/", {"code": code_of(secret)})
    assert answer["Location"] == f"{SECURITY}codes/"
    assert b"on</span>" in alice.get(SECURITY).content
    cache.clear()  # a code works once
    client = visit(None)
    assert sign_in(client)["Location"] == "/ui/login/mfa/"
    assert client.get("/ui/").status_code == 302
    assert client.post("/ui/login/mfa/", {"code": "000000"}).status_code == 422
    answer = client.post("/ui/login/mfa/", {"code": code_of(secret)})
    assert (answer.status_code, answer["Location"]) == (302, "/ui/me/")
    assert client.get("/ui/").status_code == 200
    assert verbs()[-2:] == [
        (PeopleVerb.SIGN_IN_FAILED, {"by": ["authenticator app"]}),
        (PeopleVerb.SIGN_IN, {"by": ["password", "authenticator app"]}),
    ]


def test_recovery_codes_are_shown_once_and_are_not_a_factor_alone(alice, cast):
    answer = alice.post(f"{SECURITY}codes/new/")
    assert answer.status_code == 422
    assert b'class="banner danger"' in answer.content
    assert alice.get(f"{SECURITY}codes/").status_code == 404
    TOTP.activate(cast["alice"], generate_totp_secret())
    assert alice.post(f"{SECURITY}codes/new/")["Location"] == f"{SECURITY}codes/"
    page = alice.get(f"{SECURITY}codes/")
    assert len(page.context["unused_codes"]) == 10
    assert page["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    assert alice.get(f"{SECURITY}codes/")["Location"] == SECURITY


def test_a_recovery_code_lets_in_once(visit, codes):
    for expected in (302, 422):
        client = visit(None)
        sign_in(client)
        assert client.post("/ui/login/mfa/", {"code": codes[0]}).status_code == expected


def test_codes_cannot_be_tried_for_long(visit, codes):
    client = visit(None)
    sign_in(client)
    for _ in range(5):
        client.post("/ui/login/mfa/", {"code": "1"})
    answer = client.post("/ui/login/mfa/", {"code": codes[0]})
    assert answer.status_code == 429
    assert 200 < int(answer["Retry-After"]) <= 300


def test_secrets_are_sealed(cast, caplog):
    secret = generate_totp_secret()
    app = TOTP.activate(cast["alice"], secret)
    assert secret not in str(Authenticator.objects.get(pk=app.instance.pk).data)
    assert app.validate_code(code_of(secret))
    app.instance.data["secret"] = "sealed by another"
    assert not app.validate_code(code_of(secret))
    assert "TABLERO_SECRET has changed" in caplog.text


def test_an_app_is_turned_off(alice, visit, codes):
    assert alice.get(f"{SECURITY}app/")["Location"] == f"{SECURITY}app/off/"
    assert b"Turn off" in alice.get(f"{SECURITY}app/off/").content
    assert alice.post(f"{SECURITY}app/off/")["Location"] == SECURITY
    assert sign_in(visit(None))["Location"] == "/ui/me/"
    assert not Authenticator.objects.exists()


def test_wants_a_recent_proof(visit):
    client = visit("alice")
    for page in SECRET_PAGES:
        for answer in (client.get(SECURITY + page), client.post(SECURITY + page)):
            assert answer["Location"].startswith("/ui/me/again/?next=%2Fui%2Fme%2Fsecurity%2F"), page


def test_a_passkey_wants_a_name_over_https(alice):
    for host, is_secure, is_possible in [
        ("localhost:10002", False, True),
        ("tablero.localhost:8080", False, True),
        ("tablero.example", True, True),
        ("tablero.example", False, False),
        ("127.0.0.1", True, False),
        ("[::1]:10002", True, False),
    ]:
        page = alice.get(f"{SECURITY}passkeys/", secure=is_secure, headers={"Host": host})
        assert (b'data-passkey="create"' in page.content) is is_possible, (host, is_secure)
    assert b"Passkeys need HTTPS" in alice.get(SECURITY).content


def test_refuses_invalid_passkeys(alice, visit):
    for credential in ["", "null", HOLLOW, "[" * 100_000, "9" * 5000, "\0"]:
        sent = {"name": "x", "credential": credential, "passwordless": "on"}
        assert alice.post(f"{SECURITY}passkeys/", sent).status_code == 422, credential
        assert alice.post("/ui/me/again/passkey/", {"credential": credential}).status_code == 422, credential
        client = visit(None)
        client.get("/ui/login/passkey/", headers={"Accept": "application/json"})
        refused = client.post("/ui/login/passkey/", {"credential": credential})
        assert refused["Location"] == "/ui/login/", credential
        assert client.get("/ui/").status_code == 302, credential


def test_passkeys_of_others_get_404(alice, cast):
    other = Authenticator.objects.create(
        user=cast["max"], type=Authenticator.Type.WEBAUTHN, data={"name": "x", "credential": {}}
    )
    for page in (f"passkeys/{other.pk}/", f"passkeys/{other.pk}/remove/"):
        assert alice.post(SECURITY + page, {"name": "mine"}).status_code == 404


def test_sessions_are_listed_and_ended(visit):
    here, there, third = visit(None), visit(None), visit(None)
    for client, agent in ((here, FIREFOX), (there, EDGE), (third, "")):
        client.defaults["HTTP_USER_AGENT"] = agent
        sign_in(client)
    page = here.get("/ui/me/sessions/").content.decode()
    assert page.count("this browser</span>") == 1
    assert "Firefox on Linux" in page
    assert "Edge on Windows" in page
    assert "Unknown browser" in page
    number = UserSession.objects.get(user_agent=EDGE).pk
    here.post(f"/ui/me/sessions/{number}/end/")
    assert [client.get("/ui/").status_code for client in (here, there, third)] == [200, 302, 200]
    here.post("/ui/me/sessions/end/")
    assert [client.get("/ui/").status_code for client in (here, third)] == [200, 302]


def test_sessions_of_others_cannot_be_ended(visit, proven):
    alice, max_ = proven("alice"), visit("max")
    max_.get("/ui/")
    alice.post(f"/ui/me/sessions/{UserSession.objects.get(user__username='max').pk}/end/")
    assert max_.get("/ui/").status_code == 200


def test_expired_sessions_go(visit):
    visit("alice").get("/ui/")
    visit("max").get("/ui/")
    Session.objects.filter(session_key=UserSession.objects.get(user__username="max").session_key).update(
        expire_date=timezone.now()
    )
    sessions.delete_expired(timezone.now())
    assert [one.user.username for one in UserSession.objects.all()] == ["alice"]
    assert Session.objects.count() == 1


def test_a_sign_in_begins_a_new_session(visit):
    """A session that another person has begun in the browser is not taken over."""
    client = visit(None)
    session = client.session
    session["begun"] = "elsewhere"
    session.save()
    before = session.session_key
    client.post("/ui/login/", {"login": "alice", "password": PASSWORD})
    after = client.session.session_key
    assert before != after
    assert len(after) == 32
    assert not Session.objects.filter(session_key=before).exists()


def test_a_session_ends_however_often_it_is_used(visit):
    client = visit("alice")
    assert client.get("/ui/").status_code == 200
    known = UserSession.objects.filter(user__username="alice")
    for age, status in ((sessions.LONGEST - timedelta(hours=1), 200), (sessions.LONGEST, 302)):
        known.update(created_at=timezone.now() - age, last_seen_at=timezone.now() - timedelta(minutes=2))
        assert client.get("/ui/").status_code == status
    assert not known.exists()
    assert not Session.objects.exists()


def test_a_second_factor_can_be_required(visit, cast, settings):
    settings.SECOND_FACTOR_REQUIRED = True
    client = Client()
    sign_in(client)
    for path in ("/ui/", "/ui/a/acme/", "/ui/me/tokens/new/"):
        assert client.get(path)["Location"] == SECURITY
    assert client.post("/ui/a/acme/tables/new/", {"name": "orders"})["Location"] == SECURITY
    page = client.get(SECURITY)
    assert b"This server requires a second factor." in page.content
    assert client.get(f"{SECURITY}app/").status_code == 200
    TOTP.activate(cast["alice"], generate_totp_secret())
    assert client.get("/ui/a/acme/").status_code == 200
    assert visit(None).get("/ui/login/").status_code == 200


def test_sign_ins_are_recorded(visit):
    client = Client(headers={"User-Agent": FIREFOX})
    client.post("/ui/login/", {"login": "alice", "password": "wrong horse"})
    client.post("/ui/login/", {"login": "correct horse", "password": "alice"})
    sign_in(client)
    client.post("/ui/logout/")
    result = Activity.objects.filter(verb__startswith="user.").order_by("pk")
    assert list(result.values_list("verb", "actor", "detail")) == [
        (PeopleVerb.SIGN_IN_FAILED, "alice", {"by": ["password"]}),
        (PeopleVerb.SIGN_IN_FAILED, "", {"by": ["password"]}),  # the name may be a mistyped password
        (PeopleVerb.SIGN_IN, "alice", {"by": ["password"]}),
        (PeopleVerb.SIGN_OUT, "alice", {}),
    ]
    assert {(one.address, one.agent) for one in result} == {("127.0.0.1", FIREFOX)}


def test_options_are_not_given_out_without_end(client, db):
    ask = {"headers": {"Accept": "application/json"}}
    answers = [client.get("/ui/login/passkey/", **ask).status_code for _ in range(31)]
    assert answers == [200] * 30 + [429]
    assert Session.objects.get().expire_date < timezone.now() + timedelta(minutes=11)
