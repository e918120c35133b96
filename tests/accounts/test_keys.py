"""The keys of an account: hidden until the user proves their identity; every view is recorded."""

import json
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from console.snippets.connections import FORMATS, MASK
from storage.access import keys, retired_keys
from storage.access import sas as sas_operations
from storage.access.inspection import facts
from storage.accounts import accounts, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.accounts.subject import AccountVerb
from storage.domain.requests.metrics import CredentialClient as User
from storage.domain.requests.metrics import UseCount
from storage.domain.requests.observed import Authentication
from storage.domain.sas import TableSas, fingerprint, sign
from storage.domain.sas import to_parameters as parameters_of
from storage.inspector import inspect
from storage.metrics.last_day import hour_of
from storage.metrics.usage import Uses
from storage.models import Activity

HTMX = {"HX-Request": "true"}
KEYS = "/ui/a/acme/keys/"


@pytest.fixture
def secrets(account):
    return [sealed_keys.encode_key(key) for key in sealed_keys.keys_of(account)]


def use(account, authentication, name, count=1, *, ago=timedelta(0), parameters=(), agent="sdk"):
    moment = timezone.now() - ago
    uses = Uses("one")
    client = User(account.pk, authentication, name, "192.0.2.1", agent)
    uses.add(hour_of(moment), client, UseCount(count, moment), parameters)
    uses.write()


def sas(account, number, table="people", *, expiry="2099-01-01", **options):
    """Record the use of a token signed with key 1 or 2, and return its fingerprint."""
    unsigned = TableSas(version="2019-02-02", table=table, permissions="r", expiry=expiry)
    token = sign(unsigned, account.name, sealed_keys.keys_of(account)[number - 1])
    use(account, Authentication.SAS, fingerprint(token), parameters=parameters_of(token), **options)
    return fingerprint(token)


def record():
    return [(done.verb, done.detail, done.actor) for done in Activity.objects.order_by("pk")][1:]


def test_no_key_is_in_the_page_and_the_page_is_kept_nowhere(visit, secrets):
    answer = visit("alice").get(KEYS)
    assert "no-store" in answer["Cache-Control"]
    page = answer.content.decode()
    assert not any(secret in page for secret in secrets)
    assert MASK in page


def test_says_who_uses_the_keys(visit, account):
    use(account, Authentication.KEY, "key1", 5, agent="azsdk-python")
    of_first = sas(account, 1)
    of_second = {sas(account, 2), sas(account, 2, "other", ago=timedelta(days=3))}
    parameters = (("sv", "2019-02-02"), ("tn", "people"), ("sp", "r"), ("se", "2099-01-01"))
    use(account, Authentication.SAS, "ab" * 32, parameters=parameters)  # by an earlier key
    first, second = visit("max").get(KEYS).context["keys"]
    assert (first.uses, first.last.agent, first.last.address) == (5, "azsdk-python", "192.0.2.1")
    assert (second.uses, second.last) == (0, None)
    assert [token.fingerprint for token in first.tokens] == [of_first]
    assert {token.fingerprint for token in second.tokens} == of_second


def test_revealing_wants_a_proof(visit, secrets):
    client = visit("alice")
    answer = client.post(KEYS + "1/reveal/", headers=HTMX)
    assert (answer.status_code, answer["X-Tablero-Sign-In"]) == (
        401,
        "/ui/me/again/?next=%2Fui%2Flogin%2Fdone%2F",
    )
    assert secrets[0] not in answer.content.decode()
    assert client.post(KEYS + "1/copy/").status_code == 302
    assert record() == []


def test_reveals_and_records(proven, secrets):
    client = proven("max")
    for which in [1, 2]:
        answer = client.post(f"{KEYS}{which}/reveal/", headers=HTMX)
        assert secrets[which - 1] in answer.content.decode(), which
        assert secrets[2 - which] not in answer.content.decode(), which
        assert "no-store" in answer["Cache-Control"], which
        assert b"<html" not in answer.content, which
        assert record()[-1] == (AccountVerb.KEY_REVEAL, {"key": f"key{which}"}, "max"), which
        hidden = client.get(f"{KEYS}?hide={which}", headers=HTMX).content.decode()
        assert f'id="key-{which}"' in hidden, which
        assert secrets[which - 1] not in hidden, which


def test_copies_without_showing_and_reveals_without_scripts_for_a_minute(proven, secrets):
    client = proven("alice")
    answer = client.post(KEYS + "2/copy/", headers=HTMX)
    assert (answer.content.decode(), answer["Content-Type"]) == (secrets[1], "text/plain; charset=utf-8")
    assert "no-store" in answer["Cache-Control"]
    assert record()[-1][:2] == (AccountVerb.KEY_COPY, {"key": "key2"})
    answer = client.post(KEYS + "1/reveal/")
    assert secrets[0] in answer.content.decode()
    assert answer["Refresh"] == f"60; url={KEYS}"
    assert "no-store" in answer["Cache-Control"]
    assert not any(secret in str(done.__dict__) for secret in secrets for done in Activity.objects.all())


# connection strings


def test_connections_show_no_key_until_it_is_revealed_and_then_connect(proven, account, secrets):
    known = facts([account], timezone.now(), scheme="http", host="testserver", client="192.0.2.1")
    client = proven("alice")
    for paste in FORMATS:
        asked = {"format": paste.slug, "key": "2"}
        masked = client.get(KEYS, asked).context["text"]
        assert MASK in masked, paste.slug
        revealed = client.post(KEYS + "connection/", asked).context["text"]
        assert revealed == masked.replace(MASK, secrets[1]), paste.slug
        report = inspect(revealed, known)
        result = (report.account, report.key, report.verdict.error, report.findings)
        assert result == ("acme", "key2", None, []), paste.slug
        if paste.slug in ("appsettings", "functions"):
            json.loads(revealed)
    copied = client.post(KEYS + "connection/copy/", asked).content.decode()
    assert copied == revealed


def test_the_connection_string_is_for_the_chosen_host(visit, settings):
    settings.OPTIONS = replace(settings.OPTIONS, host_suffixes=("table.localhost",))
    client = visit("max")
    for host, name, endpoint in [
        ("here", "", "http://testserver/acme"),
        ("localhost", "", "http://127.0.0.1:10002/acme"),
        ("container", "", "http://tablero:10002/acme"),
        ("container", "tables:80", "http://tables:80/acme"),
        ("public", "tables.example.org", "https://tables.example.org/acme"),
        ("account", "", "http://acme.table.localhost"),
        ("nonsense", "x", "http://testserver/acme"),
    ]:
        answer = client.get(KEYS, {"host": host, "name": name}, headers=HTMX)
        assert f"TableEndpoint={endpoint}" in answer.context["text"], (host, name)
        assert b"<html" not in answer.content, (host, name)
    settings.OPTIONS = replace(
        settings.OPTIONS, host_suffixes=()
    )  # there is none where the server knows none
    answer = client.get(KEYS, {"host": "account"}, headers=HTMX)
    assert "TableEndpoint=http://testserver/acme" in answer.context["text"]


def test_everybody_knows_the_key_of_the_development_account(visit):
    accounts.add("devs", NewAccount(sealed_keys.DEVELOPMENT_KEY))
    ada = visit("ada")
    answer = ada.get("/ui/a/devs/keys/")
    assert sealed_keys.encode_key(sealed_keys.DEVELOPMENT_KEY) in answer.context["text"]
    assert b"A key of this account is public" in answer.content
    assert MASK in ada.get("/ui/a/devs/keys/?key=2").context["text"]


# rotation


def test_shows_who_would_be_cut_off(proven, account):
    use(account, Authentication.KEY, "key1", 5, agent="azsdk-python")
    dying = sas(account, 1)
    sas(account, 1, expiry="2020-01-01")  # nothing is lost with it
    sas(account, 2)
    client = proven("alice")
    answer = client.get(KEYS + "1/rotate/")
    assert [client.agent for client in answer.context["clients"]] == ["azsdk-python"]
    assert [row.known.fingerprint for row in answer.context["dying"]] == [dying]
    page = answer.content.decode()
    assert f"/ui/a/acme/sas/{dying}/" in page
    assert "5 requests in the last 24 hours" in page
    # the page asks again and again
    part = client.get(KEYS + "1/rotate/", headers=HTMX).content
    assert b'id="use"' in part and b"<html" not in part
    assert client.get(KEYS + "0/rotate/").status_code == client.post(KEYS + "3/reveal/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_rotates_by_the_typed_name(proven, account, secrets):
    client = proven("alice")
    refused = client.post(KEYS + "2/rotate/", {"name": "acm", "grace": "0"})
    assert refused.status_code == 422
    assert b"The name does not match" in refused.content
    assert client.post(KEYS + "2/rotate/", {"name": "acme", "grace": "2"}).status_code == 422
    answer = client.post(KEYS + "2/rotate/", {"name": "acme", "grace": "0"})
    assert (answer.status_code, answer["Location"]) == (302, KEYS + "?rotated=2&key=2")
    account.refresh_from_db()
    first, second = (sealed_keys.encode_key(key) for key in sealed_keys.keys_of(account))
    assert first == secrets[0]
    assert second != secrets[1]
    assert record()[-1] == (AccountVerb.KEY_ROTATE, {"key": "key2"}, "alice")
    page = client.get(answer["Location"]).content.decode()
    assert "key2 was rotated" in page
    assert "The old key no longer works." in page
    assert second not in page
    assert retired_keys.accepted(account) == ()


@pytest.mark.django_db(transaction=True)
def test_the_old_key_may_have_a_grace(proven, visit, account, secrets):
    dying = sas(account, 2)
    client = proven("alice")
    answer = client.post(KEYS + "2/rotate/", {"name": "acme", "grace": "24"})
    page = client.get(answer["Location"]).content.decode()
    assert "works until its grace period ends" in page
    assert "key2 (old)" in page
    (old,) = retired_keys.accepted(account)
    assert (old.name, sealed_keys.encode_key(old.key)) == ("key2 (old)", secrets[1])
    assert abs(old.until - time.time() - 24 * 3600) < 60
    assert not any(secret in page for secret in secrets)
    assert list(record()[-1][1]) == ["key", "accepted_until"]
    # tokens signed by the retired key stay valid, and rotating the new key does not end them
    assert client.get(KEYS + "2/rotate/").context["dying"] == []
    account.refresh_from_db()
    result = sas_operations.find(account, dying, timezone.now())
    assert (result.key, result.key_ends is not None) == (2, True)
    use(account, Authentication.KEY, "key2 (old)", 3, agent="late")
    (shown,) = client.get(KEYS).context["keys"][1].old
    assert (shown.uses, [user.agent for user in shown.clients]) == (3, ["late"])
    assert b"Expire now" not in visit("max").get(KEYS).content


@pytest.mark.django_db(transaction=True)
def test_a_grace_can_be_ended_at_once(visit, proven, account):
    accounts.rotate("acme", 1, grace=timedelta(hours=1))
    assert proven("max").post(KEYS + "1/end/").status_code == 403
    assert visit("alice").post(KEYS + "1/end/")["Location"].startswith("/ui/me/again/")
    assert len(retired_keys.accepted(account)) == 1
    client = proven("alice")
    assert client.post(KEYS + "1/end/")["Location"] == KEYS
    assert retired_keys.accepted(account) == ()
    assert record()[-1] == (AccountVerb.KEY_END, {"key": "key1 (old)"}, "alice")
    done = len(record())
    client.post(KEYS + "1/end/")  # there is nothing to end any more
    assert len(record()) == done
    assert "ended the grace period of" in client.get("/ui/a/acme/activity/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_uses_of_the_old_key_are_reset_by_rotation(account):
    use(account, Authentication.KEY, "key1", 5, ago=timedelta(hours=-1))
    use(account, Authentication.KEY, "key2", 7)
    sas(account, 2)
    accounts.rotate("acme", 2)
    account.refresh_from_db()
    _, second = keys.states(account, timezone.now())
    assert (second.last, second.uses, second.tokens) == (None, 0, [])
    assert keys.clients(account, second, timezone.now()) == []
